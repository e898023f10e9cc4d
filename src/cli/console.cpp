#include "cli/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

namespace postrider::cli {
namespace {

bool colour_is_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  return !refused && (term == nullptr || std::string_view(term) != "dumb");
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::red:
      return "\x1b[31m";
    case Style::yellow:
      return "\x1b[33m";
    case Style::green:
      return "\x1b[32m";
  }
  return "";
}

void put(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

Console::Console()
    : output_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      errors_are_terminal_(::isatty(STDERR_FILENO) == 1),
      colour_(output_is_terminal_ && colour_is_wanted()) {}

void Console::print(std::string_view text) {
  put(stdout, text);
}

void Console::note(std::string_view text) {
  end_progress();
  put(stderr, text);
}

void Console::complain(std::string_view what, std::string_view why) {
  note(fmt::format("postrider: {}: {}\n", what, why));
}

ExitCode Console::fail(std::string_view what, const Error& error) {
  const auto native = error.native_code.empty()
                          ? std::string()
                          : fmt::format(" [{} {}]", error.origin, error.native_code);
  complain(what, error.message + native);
  return exit_code_of(error.code);
}

void Console::progress(std::string_view text) {
  if (!errors_are_terminal_) return;
  put(stderr, fmt::format("\r{}\x1b[K", text));
  progress_shown_ = true;
}

void Console::end_progress() {
  if (!std::exchange(progress_shown_, false)) return;
  put(stderr, "\r\x1b[K");
}

std::optional<bool> Console::confirm(std::string_view question) {
  if (!input_is_terminal() || !errors_are_terminal_) return std::nullopt;
  note(fmt::format("{} [y/N] ", question));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

std::string Console::styled(Style style, std::string_view text) const {
  if (!colour_ || style == Style::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(style), text);
}

bool Console::input_is_terminal() const {
  return ::isatty(STDIN_FILENO) == 1;
}

std::optional<std::size_t> Console::width() const {
  winsize size{};
  if (!output_is_terminal_ || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return std::nullopt;
  }
  return size.ws_col;
}

}  // namespace postrider::cli

#pragma once
/// \file
/// Where a command speaks: results to standard output, everything else to standard error.
///
/// Colour and progress only on a terminal; never colour when NO_COLOR is set or TERM is "dumb".

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/result.hpp>

#include "cli/exit_code.hpp"

namespace postrider::cli {

enum class Style { plain, bold, red, yellow, green };

class Console {
 public:
  Console();

  /// Results. A reader that went away (`postrider status | head -1`) is no error.
  void print(std::string_view text);
  /// Everything that is not a result.
  void note(std::string_view text);

  /// "postrider: WHAT: WHY"; `why` ends with what to do.
  void complain(std::string_view what, std::string_view why);
  /// The same for a failed call; returns the exit code that fits.
  ExitCode fail(std::string_view what, const Error& error);

  /// Replaces the line of progress; does nothing unless standard error is a terminal.
  void progress(std::string_view text);
  void end_progress();

  /// Asks on the terminal; nothing when there is nobody to ask.
  [[nodiscard]] std::optional<bool> confirm(std::string_view question);

  [[nodiscard]] std::string styled(Style style, std::string_view text) const;
  [[nodiscard]] bool input_is_terminal() const;
  [[nodiscard]] bool errors_are_terminal() const { return errors_are_terminal_; }
  /// Columns of the terminal; nothing when the output goes elsewhere and may be of any width.
  [[nodiscard]] std::optional<std::size_t> width() const;

 private:
  bool output_is_terminal_;
  bool errors_are_terminal_;
  bool colour_;
  bool progress_shown_ = false;
};

}  // namespace postrider::cli

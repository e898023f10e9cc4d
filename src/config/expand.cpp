#include "config/expand.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

namespace postrider::config {
namespace {

constexpr std::size_t most_secret_bytes = 64U << 10U;  // a mistaken path must not fill the memory

Error unusable(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "config", ""};
}

Result<std::string> variable(const std::string& name, const Environment& environment) {
  const auto is_word = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_word)) {
    return unusable(
        "'${' is followed by no name of a variable. Write ${NAME}, ${file:PATH}, or "
        "$${ for the characters themselves.");
  }
  auto value = environment(name);
  if (!value || value->empty()) {
    return unusable(fmt::format("the environment variable {} is {}. Set it for this process.", name,
                                value ? "empty" : "not set"));
  }
  return std::move(value).value();
}

Result<std::string> file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content(most_secret_bytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    return unusable(fmt::format("the file '{}' cannot be read. Check its path and rights.", path));
  }
  if (content.ends_with('\n')) content.pop_back();
  if (content.empty() || content.size() > most_secret_bytes) {
    return unusable(fmt::format("the file '{}' is {}. It must hold one value.", path,
                                content.empty() ? "empty" : "too large"));
  }
  return content;
}

Result<std::string> resolve(const std::string& reference, const Environment& environment) {
  constexpr std::string_view file_mark = "file:";
  if (reference.starts_with(file_mark)) return file_content(reference.substr(file_mark.size()));
  return variable(reference, environment);
}

std::string percent_encoded(std::string_view value) {
  std::string encoded;
  for (const char c : value) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace

Result<std::string> expand(std::string_view text, const Environment& environment) {
  const bool url = text.find("://") != std::string_view::npos;
  std::string expanded;
  for (auto rest = text; !rest.empty();) {
    const auto mark = rest.find("${");
    if (mark == std::string_view::npos) return expanded.append(rest);
    if (mark > 0 && rest[mark - 1] == '$') {
      expanded.append(rest.substr(0, mark - 1)).append("${");
      rest.remove_prefix(mark + 2);
      continue;
    }
    const auto end = rest.find('}', mark);
    if (end == std::string_view::npos) {
      return unusable("'${' is not closed by '}'. Close it, or write $${ for the characters.");
    }
    auto value = resolve(std::string(rest.substr(mark + 2, end - mark - 2)), environment);
    if (!value) return value;
    expanded.append(rest.substr(0, mark)).append(url ? percent_encoded(*value) : *value);
    rest.remove_prefix(end + 1);
  }
  return expanded;
}

}  // namespace postrider::config

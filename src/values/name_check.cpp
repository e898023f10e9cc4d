#include "values/name_check.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.hpp"

namespace postrider {

Error invalid_value(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "event", ""};
}

Error over_limit(std::string_view what, std::size_t size, std::size_t limit,
                 std::string_view remedy) {
  return {ErrorCode::limit_exceeded, Disposition::reject,
          fmt::format("{} is {} bytes long and may have {}. {}", what, size, limit, remedy),
          "event", ""};
}

Result<void> check_text(std::string_view what, std::string_view text) {
  if (const auto at = first_invalid_utf8(text)) {
    return invalid_value(fmt::format(
        "{} is not valid UTF-8 at byte {}. Put bytes into the payload only.", what, *at));
  }
  if (const auto at = first_control(text)) {
    return invalid_value(
        fmt::format("{} has a control character at byte {}. Remove it: some transports would take "
                    "it for the end of a line.",
                    what, *at));
  }
  return {};
}

Result<void> check_name(std::string_view what, std::string_view name, std::size_t most_bytes) {
  if (name.empty()) return invalid_value(fmt::format("{} is empty. Give it a name.", what));
  if (name.size() > most_bytes) return over_limit(what, name.size(), most_bytes, "Shorten it.");
  return check_text(what, name);
}

}  // namespace postrider

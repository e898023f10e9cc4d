#include "cli/given.hpp"

#include <fmt/format.h>

#include "cli/table.hpp"
#include "config/duration.hpp"

namespace postrider::cli {
namespace {

Error wrong(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "cli", ""};
}

}  // namespace

Result<Aggregate> aggregate_of(const std::string& given) {
  const auto slash = given.find('/');
  if (slash == std::string::npos)
    return wrong("--aggregate has no slash. Write TYPE/ID, such as order/1.");
  return Aggregate{given.substr(0, slash), given.substr(slash + 1)};
}

Result<Uuid> id_of(const std::string& given, std::string_view of) {
  if (const auto id = Uuid::parse(given)) return *id;
  return wrong(
      fmt::format("'{}' is no id of {}. Give a UUID, as the list shows it.", harmless(given), of));
}

Result<milliseconds> duration_of(const std::string& given, std::string_view option) {
  if (const auto duration = config::parse_duration(given)) return *duration;
  return wrong(fmt::format("{} is no duration. Write 500ms, 5s, 2m, 1h or 7d.", option));
}

}  // namespace postrider::cli

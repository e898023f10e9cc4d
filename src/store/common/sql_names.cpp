#include "store/common/sql_names.hpp"

#include <fmt/format.h>

#include <utility>

namespace postrider::store {
namespace {

Error invalid_names(std::string message) {
  return {ErrorCode::config_invalid, Disposition::stop, std::move(message), "config", ""};
}

bool is_identifier(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyz_0123456789";
  return letters.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

Result<void> check_identifier(std::string_view what, std::string_view text,
                              std::size_t most_bytes) {
  if (text.empty()) return {};
  if (text.size() > most_bytes) {
    return invalid_names(fmt::format("{} is {} bytes long and may have {}. Shorten it.", what,
                                     text.size(), most_bytes));
  }
  // The text itself is not shown: what is no identifier may be anything.
  if (!is_identifier(text)) {
    return invalid_names(fmt::format(
        "{} may hold only a-z, 0-9 and '_' and may not start with a digit. Choose another.", what));
  }
  if (text.starts_with("sqlite_") || text.starts_with("pg_")) {
    return invalid_names(fmt::format(
        "{} starts with 'sqlite_' or 'pg_', which databases keep for themselves. Choose another.",
        what));
  }
  return {};
}

std::string replace_all(std::string_view text, std::string_view placeholder,
                        std::string_view value) {
  std::string result;
  result.reserve(text.size());
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(placeholder, from)) != std::string_view::npos;
       from = at + placeholder.size()) {
    result.append(text, from, at - from).append(value);
  }
  return result.append(text, from);
}

}  // namespace

Result<void> validate(const SchemaNames& names, SchemaSupport support) {
  if (support == SchemaSupport::none && !names.schema.empty()) {
    return invalid_names(
        "this database has no schemas. Leave the schema empty and use the prefix.");
  }
  if (auto checked = check_identifier("the schema", names.schema, most_schema_bytes); !checked) {
    return checked;
  }
  return check_identifier("the table prefix", names.prefix, most_prefix_bytes);
}

std::string substitute_names(std::string_view sql, const SchemaNames& names) {
  const std::string schema = names.schema.empty() ? "" : fmt::format("\"{}\".", names.schema);
  return replace_all(replace_all(sql, "{schema}", schema), "{prefix}", names.prefix);
}

}  // namespace postrider::store

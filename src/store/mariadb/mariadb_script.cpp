#include "store/mariadb/mariadb_script.hpp"

namespace postrider::store::mariadb {
namespace {

constexpr std::string_view delimiter_word = "DELIMITER ";
constexpr std::string_view partitions_word = "{partitions}";

bool is_blank(std::string_view line) {
  return line.empty() || line.starts_with("--");
}

}  // namespace

std::vector<std::string> statements_of(std::string_view script) {
  std::vector<std::string> statements;
  std::string statement;
  std::string delimiter = ";";
  while (!script.empty()) {
    const auto end = script.find('\n');
    const auto line = script.substr(0, end);
    script = end == std::string_view::npos ? std::string_view() : script.substr(end + 1);
    if (line.starts_with(delimiter_word)) {
      delimiter = line.substr(delimiter_word.size());
      continue;
    }
    if (statement.empty() && is_blank(line)) continue;
    const bool ends = line.ends_with(delimiter);
    statement.append(line, 0, line.size() - (ends ? delimiter.size() : 0)) += '\n';
    if (!ends) continue;
    statements.push_back(std::move(statement));
    statement.clear();
  }
  if (!statement.empty()) statements.push_back(std::move(statement));
  return statements;
}

std::string with_partitions(std::string sql, int partitions) {
  for (std::size_t at = 0; (at = sql.find(partitions_word, at)) != std::string::npos;) {
    sql.replace(at, partitions_word.size(), std::to_string(partitions));
  }
  return sql;
}

}  // namespace postrider::store::mariadb

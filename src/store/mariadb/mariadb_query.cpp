#include "store/mariadb/mariadb_query.hpp"

#include <mariadb/mysql.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/timestamp_text.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "x'";
  text.reserve(2 * bytes.size() + 3);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text += '\'';
}

std::string with_backslashes(std::string_view text) {
  std::string quoted = "'";
  quoted.reserve(text.size() + text.size() / 8 + 2);
  for (const char c : text) {
    if (c == '\0') {
      quoted += "\\0";
      continue;
    }
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted += '\'';
}

template <class Values, class Literal>
std::string list_of(const Values& values, Literal literal) {
  if (values.empty()) return "(NULL)";
  std::string list = "(";
  for (const auto& value : values) {
    if (list.size() > 1) list += ',';
    list += literal(value);
  }
  return list += ')';
}

}  // namespace

std::string_view statement_name(std::string_view text) {
  const auto& all = sql::store_mariadb::statements;
  const auto* const found = std::find_if(std::begin(all), std::end(all),
                                         [&](const auto& each) { return each.text == text; });
  return found == std::end(all) ? text : found->name;
}

std::string text_literal(std::string_view text, Quoting quoting) {
  return quoting == Quoting::hexadecimal ? "_utf8mb4 " + hexadecimal(text) : with_backslashes(text);
}

std::string bytes_literal(std::string_view bytes, Quoting quoting) {
  return quoting == Quoting::hexadecimal ? hexadecimal(bytes) : "_binary" + with_backslashes(bytes);
}

std::string datetime_text(Timestamp time) {
  auto text = timestamp_text(time);
  text[10] = ' ';
  text.pop_back();
  return text;
}

std::optional<Timestamp> parse_datetime(std::string_view text) {
  if (text.size() != 26 || text[10] != ' ') return std::nullopt;
  std::string standard(text);
  standard[10] = 'T';
  return parse_timestamp(standard += 'Z');
}

void FreeResult::operator()(st_mysql_res* result) const noexcept {
  mysql_free_result(result);
}

void MariadbQuery::keep_bound(const char* name, std::string literal) {
  POSTRIDER_ASSERT(!sent_ && text_.find(name) != std::string_view::npos);
  bound_.insert_or_assign(name + 1, std::move(literal));
}

MariadbQuery& MariadbQuery::bind(const char* name, std::int64_t value) {
  keep_bound(name, std::to_string(value));
  return *this;
}

MariadbQuery& MariadbQuery::bind(const char* name, std::string_view text) {
  keep_bound(name, text_literal(text, executor_->quoting()));
  return *this;
}

MariadbQuery& MariadbQuery::bind_if(const char* name, const std::optional<std::string>& text) {
  return text ? bind(name, std::string_view(*text)) : *this;
}

MariadbQuery& MariadbQuery::bind_bytes(const char* name, std::string_view bytes) {
  keep_bound(name, bytes_literal(bytes, executor_->quoting()));
  return *this;
}

MariadbQuery& MariadbQuery::bind(const char* name, Timestamp time) {
  keep_bound(name, "'" + datetime_text(time) + "'");
  return *this;
}

MariadbQuery& MariadbQuery::bind_list(const char* name, std::span<const std::int64_t> values) {
  keep_bound(name, list_of(values, [](std::int64_t value) { return std::to_string(value); }));
  return *this;
}

MariadbQuery& MariadbQuery::bind_list(const char* name, std::span<const std::string> texts) {
  keep_bound(name, list_of(texts, [&](const std::string& text) {
               return text_literal(text, executor_->quoting());
             }));
  return *this;
}

MariadbQuery& MariadbQuery::bind_sql(const char* name, std::string sql) {
  keep_bound(name, std::move(sql));
  return *this;
}

/// Our statements have no colon but before a parameter, and comments only before them.
void MariadbQuery::render(std::string_view text, std::string& sql) const {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != ':') {
      sql += text[at++];
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && is_name_character(text[end]))
      ++end;
    const auto bound = bound_.find(text.substr(at + 1, end - at - 1));
    sql += bound == bound_.end() ? std::string_view("NULL") : std::string_view(bound->second);
    at = end;
  }
}

std::size_t MariadbQuery::tuple_begin() const {
  constexpr std::string_view values = "\nVALUES (";
  const auto at = text_.find(values);
  POSTRIDER_ASSERT(at != std::string_view::npos);
  return at + values.size() - 1;
}

std::size_t MariadbQuery::tuple_end() const {
  std::size_t at = tuple_begin();
  for (int open = 0; at < text_.size(); ++at) {
    if (text_[at] == '(') ++open;
    if (text_[at] == ')' && --open == 0) break;
  }
  return at + 1;
}

MariadbQuery& MariadbQuery::end_tuple() {
  if (!tuples_.empty()) tuples_ += ",\n";
  const auto begin = tuple_begin();
  render(text_.substr(begin, tuple_end() - begin), tuples_);
  bound_.clear();
  return *this;
}

std::string MariadbQuery::render() const {
  std::string sql;
  if (tuples_.empty()) {
    std::size_t size = text_.size();
    for (const auto& [name, literal] : bound_)
      size += literal.size();
    sql.reserve(size);
    render(text_, sql);
    return sql;
  }
  sql.reserve(text_.size() + tuples_.size());
  return sql.append(text_.substr(0, tuple_begin()))
      .append(tuples_)
      .append(text_.substr(tuple_end()));
}

bool MariadbQuery::next() {
  if (error_) return false;
  if (!sent_) {
    sent_ = true;
    auto answered = executor_->execute(render(), name_);
    if (!answered) {
      error_ = answered.error();
      return false;
    }
    rows_ = std::move(answered).value();
  }
  row_ = rows_ == nullptr ? nullptr : mysql_fetch_row(rows_.get());
  if (row_ == nullptr) return false;
  lengths_ = mysql_fetch_lengths(rows_.get());
  return true;
}

Result<void> MariadbQuery::run() {
  while (next()) {
  }
  return result();
}

Result<void> MariadbQuery::result() const {
  if (error_) return *error_;
  return {};
}

bool MariadbQuery::is_null(int column) const {
  return row_[column] == nullptr;
}

std::int64_t MariadbQuery::integer(int column) const {
  std::int64_t value = 0;
  if (row_[column] != nullptr) {
    std::from_chars(row_[column], row_[column] + lengths_[column], value);
  }
  return value;
}

std::optional<std::int64_t> MariadbQuery::optional_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

std::string MariadbQuery::text(int column) const {
  return is_null(column) ? std::string() : std::string(row_[column], lengths_[column]);
}

std::optional<std::string> MariadbQuery::optional_text(int column) const {
  if (is_null(column)) return std::nullopt;
  return text(column);
}

std::optional<Timestamp> MariadbQuery::time(int column) const {
  if (is_null(column)) return std::nullopt;
  return parse_datetime({row_[column], lengths_[column]});
}

std::size_t MariadbQuery::size(int column) const {
  return is_null(column) ? 0 : lengths_[column];
}

}  // namespace postrider::store::mariadb

#include "config/document.hpp"

#include <toml++/toml.h>

#include "config/keys.hpp"

namespace postrider::config {
namespace {

constexpr std::string_view routes = "routes";
constexpr std::string_view schedule_section = "schedules";

Value value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return {text->get()};
  if (const auto* number = node.as_integer()) return {number->get()};
  if (const auto* boolean = node.as_boolean()) return {boolean->get()};
  if (const auto* array = node.as_array()) {
    std::vector<Value> values;
    for (const auto& element : *array)
      values.push_back(value_of(element));
    return {std::move(values)};
  }
  if (node.is_table()) return {Unusable{"a table"}};
  if (node.is_floating_point()) return {Unusable{"a number with a fraction"}};
  return {Unusable{"a date or time"}};
}

class Reader {
 public:
  explicit Reader(Document& document) : document_(&document) {}

  void walk(const toml::table& table, const std::string& section, int element) {
    for (const auto& [name, node] : table) {
      const auto inner =
          section.empty() ? std::string(name.str()) : section + "." + std::string(name.str());
      if (inner == routes && node.is_array_of_tables()) {
        walk_elements(*node.as_array(), inner, document_->route_lines);
      } else if (inner == schedule_section && node.is_array_of_tables()) {
        walk_elements(*node.as_array(), inner, document_->schedule_lines);
      } else if (inner != routes && inner != schedule_section && is_section(inner) &&
                 node.is_table()) {
        walk(*node.as_table(), inner, element);
      } else {
        const auto line = static_cast<int>(name.source().begin.line);
        document_->entries.push_back(
            {section, element, std::string(name.str()), value_of(node), line});
      }
    }
  }

 private:
  void walk_elements(const toml::array& array, const std::string& section,
                     std::vector<int>& lines) {
    for (const auto& element : array) {
      lines.push_back(static_cast<int>(element.source().begin.line));
      walk(*element.as_table(), section, static_cast<int>(lines.size()) - 1);
    }
  }

  Document* document_;
};

}  // namespace

std::string kind_of(const Value& value) {
  switch (value.content.index()) {
    case 0:
      return "a text";
    case 1:
      return "a whole number";
    case 2:
      return "true or false";
    case 3:
      return "a list";
    default:
      return std::get<Unusable>(value.content).kind;
  }
}

Document read_document(std::string_view text) {
  Document document;
  try {
    Reader(document).walk(toml::parse(text, std::string_view()), "", -1);
  } catch (const toml::parse_error& error) {
    document.fault = std::string(error.description());
    document.fault_line = static_cast<int>(error.source().begin.line);
  }
  return document;
}

}  // namespace postrider::config

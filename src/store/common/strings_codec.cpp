#include "store/common/strings_codec.hpp"

#include <nlohmann/json.hpp>

namespace postrider::store {

std::string encode_strings(std::span<const std::string> strings) {
  auto array = nlohmann::json::array();
  for (const auto& string : strings)
    array.push_back(string);
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::vector<std::string>> decode_strings(std::string_view json) {
  const auto fault =
      Error{ErrorCode::invalid_argument, Disposition::reject,
            "a list of names is not a JSON array of strings. Repair the row.", "names", ""};
  const auto array = nlohmann::json::parse(json, nullptr, false);
  if (!array.is_array()) return fault;
  std::vector<std::string> strings;
  for (const auto& element : array) {
    if (!element.is_string()) return fault;
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

}  // namespace postrider::store

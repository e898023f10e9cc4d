#include <algorithm>
#include <optional>
#include <utility>

#include <postrider/codec.hpp>
#include <postrider/typed_event.hpp>

namespace postrider {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string text) {
  for (auto& c : text)
    c = lower(c);
  return text;
}

std::optional<Error> find_denied(const FieldValue& value, const std::vector<std::string>& names) {
  if (const auto* items = std::get_if<FieldItems>(&value.content)) {
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (auto denied = find_denied((*items)[i], names)) return in_item(i, *std::move(denied));
    }
  } else if (const auto* members = std::get_if<FieldMembers>(&value.content)) {
    for (const auto& [name, member] : *members) {
      if (std::binary_search(names.begin(), names.end(), lower(name))) {
        return in_field(name, field_error("must not leave in an event. Send a reference instead."));
      }
      if (auto denied = find_denied(member, names)) return in_field(name, *std::move(denied));
    }
  }
  return std::nullopt;
}

}  // namespace

FieldDenyList::FieldDenyList(const Codec& inner, std::vector<std::string> names) : inner_(&inner) {
  for (auto& name : names)
    names_.push_back(lower(std::move(name)));
  std::sort(names_.begin(), names_.end());
}

Result<std::string> FieldDenyList::encode(const FieldValue& value) const {
  if (auto denied = find_denied(value, names_)) return *std::move(denied);
  return inner_->encode(value);
}

}  // namespace postrider

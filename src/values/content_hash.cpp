#include <postrider/content_hash.hpp>

#include <fmt/format.h>

#include "base/digest.hpp"

namespace postrider {
namespace {

/// Lengths in front, so that no two events have one text.
void append(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

template <class AnyEvent>
ContentHash hash_of(const AnyEvent& event) {
  std::string text;
  append(text, event.type);
  if (event.aggregate) {
    append(text, event.aggregate->type);
    append(text, event.aggregate->id);
  } else {
    text += '-';
  }
  append(text, event.content_type);
  append(text, std::to_string(event.headers.size()));
  for (const auto& [name, value] : event.headers) {
    append(text, name);
    append(text, value);
  }
  text += std::to_string(event.payload.size()) + ':';
  // Apart, as a payload may have many megabytes.
  return {sha256({text, event.payload})};
}

}  // namespace

ContentHash content_hash(const NewEvent& event) {
  return hash_of(event);
}

ContentHash content_hash(const Event& event) {
  return hash_of(event);
}

std::string to_string(const ContentHash& hash) {
  std::string text;
  for (const auto byte : hash.bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace postrider

#include "values/event_template.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace postrider {
namespace {

constexpr std::string_view header_prefix = "header:";
constexpr std::string_view placeholders =
    "{type}, {aggregate_type}, {aggregate_id} and {header:NAME}";

Error template_error(std::string_view what, std::string_view fault, std::size_t position) {
  return {ErrorCode::config_invalid, Disposition::stop,
          fmt::format("{} has {} at character {}; it may hold text, {}.", what, fault, position + 1,
                      placeholders),
          "config", ""};
}

}  // namespace

std::vector<EventTemplate::Piece> EventTemplate::parse_placeholder(std::string_view name) {
  if (name == "type") return {{Kind::type, ""}};
  if (name == "aggregate_type") return {{Kind::aggregate_type, ""}};
  if (name == "aggregate_id") return {{Kind::aggregate_id, ""}};
  if (name.starts_with(header_prefix) && name.size() > header_prefix.size()) {
    return {{Kind::header, std::string(name.substr(header_prefix.size()))}};
  }
  return {};
}

Result<EventTemplate> EventTemplate::parse(std::string_view what, std::string_view text) {
  EventTemplate parsed;
  parsed.what_ = what;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t open = text.find_first_of("{}", begin);
    if (open != begin) {
      parsed.pieces_.push_back({Kind::text, std::string(text.substr(begin, open - begin))});
      if (open == std::string_view::npos) break;
    }
    if (text[open] == '}') {
      return template_error(what, "a closing brace without its opening one", open);
    }
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return template_error(what, "an unclosed brace", open);
    auto piece = parse_placeholder(text.substr(open + 1, close - open - 1));
    if (piece.empty()) return template_error(what, "an unknown placeholder", open);
    parsed.pieces_.push_back(std::move(piece.front()));
    begin = close + 1;
  }
  return parsed;
}

const std::string* EventTemplate::find(const Piece& piece, const Event& event) noexcept {
  switch (piece.kind) {
    case Kind::text:
      return &piece.text;
    case Kind::type:
      return &event.type;
    case Kind::aggregate_type:
      return event.aggregate ? &event.aggregate->type : nullptr;
    case Kind::aggregate_id:
      return event.aggregate ? &event.aggregate->id : nullptr;
    case Kind::header: {
      const auto header = event.headers.find(piece.text);
      return header == event.headers.end() ? nullptr : &header->second;
    }
  }
  return nullptr;
}

Result<std::string> EventTemplate::render(const Event& event) const {
  std::string key;
  for (const auto& piece : pieces_) {
    const std::string* part = find(piece, event);
    if (part == nullptr) {
      const auto missing = piece.kind == Kind::header ? fmt::format("no header '{}'", piece.text)
                                                      : std::string("no aggregate");
      return Error{ErrorCode::invalid_argument, Disposition::reject,
                   fmt::format("{} needs a part that the event lacks: it has {}. "
                               "Change the template or send the event by another route.",
                               what_, missing),
                   "config", ""};
    }
    key += *part;
  }
  return key;
}

bool EventTemplate::has_parts(const Event& event) const noexcept {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return find(piece, event) != nullptr; });
}

}  // namespace postrider

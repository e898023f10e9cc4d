#include "publisher/common/routing_key_template.hpp"

#include <fmt/format.h>

namespace postrider::publisher {
namespace {

constexpr std::string_view header_prefix = "header:";
constexpr std::string_view placeholders =
    "{type}, {aggregate_type}, {aggregate_id} and {header:NAME}";

Error template_error(std::string_view fault, std::size_t position) {
  return {ErrorCode::config_invalid, Disposition::stop,
          fmt::format("The routing key template has {} at character {}; it may hold text, {}.",
                      fault, position + 1, placeholders),
          "config", ""};
}

}  // namespace

Result<RoutingKeyTemplate::Piece> RoutingKeyTemplate::parse_placeholder(std::string_view name,
                                                                        std::size_t position) {
  if (name == "type") return Piece{Kind::type, ""};
  if (name == "aggregate_type") return Piece{Kind::aggregate_type, ""};
  if (name == "aggregate_id") return Piece{Kind::aggregate_id, ""};
  if (name.starts_with(header_prefix) && name.size() > header_prefix.size()) {
    return Piece{Kind::header, std::string(name.substr(header_prefix.size()))};
  }
  return template_error("an unknown placeholder", position);
}

Result<RoutingKeyTemplate> RoutingKeyTemplate::parse(std::string_view text) {
  RoutingKeyTemplate parsed;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t open = text.find_first_of("{}", begin);
    if (open != begin) {
      parsed.pieces_.push_back({Kind::text, std::string(text.substr(begin, open - begin))});
      if (open == std::string_view::npos) break;
    }
    if (text[open] == '}') return template_error("a closing brace without its opening one", open);
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) return template_error("an unclosed brace", open);
    auto piece = parse_placeholder(text.substr(open + 1, close - open - 1), open);
    if (!piece) return std::move(piece).error();
    parsed.pieces_.push_back(std::move(piece).value());
    begin = close + 1;
  }
  return parsed;
}

const std::string* RoutingKeyTemplate::find(const Piece& piece, const Event& event) {
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

Result<std::string> RoutingKeyTemplate::render(const Event& event) const {
  std::string key;
  for (const auto& piece : pieces_) {
    const std::string* part = find(piece, event);
    if (part == nullptr) {
      const auto missing = piece.kind == Kind::header ? fmt::format("no header '{}'", piece.text)
                                                      : std::string("no aggregate");
      return Error{ErrorCode::invalid_argument, Disposition::reject,
                   fmt::format("The routing key needs a part that the event lacks: it has {}. "
                               "Change the template or send the event by another route.",
                               missing),
                   "config", ""};
    }
    key += *part;
  }
  return key;
}

}  // namespace postrider::publisher

#pragma once
/// \file
/// The template from which a broker's routing key, topic or subject is made for each event.
///
///   text            stands for itself
///   {type}          the event's type
///   {aggregate_type}, {aggregate_id}
///   {header:NAME}   the event's header of that name
///
/// A part that the event lacks makes the message unsendable. An empty part in its place would send
/// it, silently, where nobody expects it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider::publisher {

/// Thread safety: a value.
class RoutingKeyTemplate {
 public:
  /// Errors: `config_invalid` names the fault and its place.
  [[nodiscard]] static Result<RoutingKeyTemplate> parse(std::string_view text);

  /// Errors: `invalid_argument` with `reject` when `event` lacks a part.
  [[nodiscard]] Result<std::string> render(const Event& event) const;

 private:
  enum class Kind : std::uint8_t { text, type, aggregate_type, aggregate_id, header };
  struct Piece {
    Kind kind;
    std::string text;  ///< of `text` the characters, of `header` the name
  };

  [[nodiscard]] static Result<Piece> parse_placeholder(std::string_view name, std::size_t position);
  /// Null when `event` lacks the part.
  [[nodiscard]] static const std::string* find(const Piece& piece, const Event& event);

  std::vector<Piece> pieces_;
};

}  // namespace postrider::publisher

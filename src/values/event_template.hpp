#pragma once
/// \file
/// A template that is filled in for each event: a broker's routing key, topic or subject, and the
/// keys of jobs.
///
///   text            stands for itself
///   {type}          the event's type
///   {aggregate_type}, {aggregate_id}
///   {header:NAME}   the event's header of that name

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/event.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// Thread safety: a value.
class EventTemplate {
 public:
  /// `what` begins sentences about it: "The routing key".
  ///
  /// Errors: `config_invalid` names the fault and its place.
  [[nodiscard]] static Result<EventTemplate> parse(std::string_view what, std::string_view text);

  /// Errors: `invalid_argument` with `reject` when `event` lacks a part. An empty part in its place
  ///   would send a message, silently, where nobody expects it.
  [[nodiscard]] Result<std::string> render(const Event& event) const;

  /// Whether `event` has every part.
  [[nodiscard]] bool has_parts(const Event& event) const noexcept;

 private:
  enum class Kind : std::uint8_t { text, type, aggregate_type, aggregate_id, header };
  struct Piece {
    Kind kind;
    std::string text;  ///< of `text` the characters, of `header` the name
  };

  /// Empty when nothing is called so.
  [[nodiscard]] static std::vector<Piece> parse_placeholder(std::string_view name);
  /// Null when `event` lacks the part.
  [[nodiscard]] static const std::string* find(const Piece& piece, const Event& event) noexcept;

  std::string what_;
  std::vector<Piece> pieces_;
};

}  // namespace postrider

#pragma once
/// \file
/// The table of everything that can be set: read by the loader, by the messages and by the test
/// that compares it with docs/operate/configuration.md.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/settings.hpp"

namespace postrider::config {

enum class KeyType : std::uint8_t {
  text,
  integer,
  duration,
  retention,  ///< a duration, or "off"
  boolean,
  choice,
  texts,      ///< a list
  durations,  ///< a list
};

/// A value that has passed the check of type and range.
using Checked = std::variant<std::string, std::int64_t, bool, std::vector<std::string>,
                             std::vector<milliseconds>>;

/// On which routes a key may be given.
enum class RouteKind : std::uint8_t { any, publish, job };

/// What a key sets. `route` and `schedule` are there for keys of these only.
struct Target {
  Settings* settings = nullptr;
  RouteSettings* route = nullptr;
  ScheduleSettings* schedule = nullptr;
};

struct Key {
  /// "" for the top of the file, "relay", "worker", "retention", "log", "schedules", "routes",
  /// "routes.amqp", "routes.http"
  std::string section;
  std::string name;
  KeyType type = KeyType::text;
  std::int64_t least = 0;  ///< integer: value; duration, retention: ms; text: bytes; list: elements
  std::int64_t most = 0;
  std::vector<std::string> choices;  ///< choice only
  std::string default_value;         ///< as it would be written; "" when there is none
  std::string purpose;               ///< one sentence
  bool required = false;
  bool identifier = false;  ///< part of an SQL name: a-z, 0-9 and '_' only
  RouteKind route_kind = RouteKind::any;
  bool expands = false;  ///< `${NAME}` is replaced; the value may be a secret and is never shown
  bool secret = false;   ///< holds nothing but secrets and their names: literals are masked
  std::function<void(const Target&, const Checked&)> set;
};

[[nodiscard]] const std::vector<Key>& all_keys();
[[nodiscard]] const Key* find_key(std::string_view section, std::string_view name);
[[nodiscard]] bool is_section(std::string_view section);

/// Whether `key`, one of a route, may be given on `route`.
[[nodiscard]] bool applies(const Key& key, const Route& route) noexcept;
/// What `key` is on `route` when it is left out, as it would be written.
[[nodiscard]] std::string default_text(const Key& key, const Route& route);

/// "relay.batch"; "store" at the top of the file.
[[nodiscard]] std::string full_name(const Key& key);
/// POSTRIDER_RELAY_BATCH; empty for keys of a route or schedule, which the environment cannot name.
[[nodiscard]] std::string environment_name(const Key& key);
/// What stands in the place of a secret.
inline constexpr std::string_view secret_mask = "***";
/// A value as the file would have it, except that literals of a `secret` key are masked. Requires:
/// it was checked for `key`.
[[nodiscard]] std::string value_text(const Key& key, const Checked& value);
/// What may be given, for messages and documents: "1 to 10000", "100ms to 1h", "halt, skip, stop".
[[nodiscard]] std::string range_text(const Key& key);

}  // namespace postrider::config

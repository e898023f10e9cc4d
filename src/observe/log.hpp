#pragma once
/// \file
/// Log lines: `Log` writes records, `LogObserver` makes a record of each notice of a relay.
///
/// A line is JSON or text. Both escape everything that could end the line or steer a terminal, so
/// hostile bytes in a name cannot forge a record.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/observer.hpp>

namespace postrider::observe {

enum class LineFormat : std::uint8_t { json, text };

/// A field of a record. 64-bit numbers that are identities (a seq) are texts, as in every JSON
/// document of ours.
using FieldValue = std::variant<std::string, std::int64_t>;
using Fields = std::vector<std::pair<std::string_view, FieldValue>>;

/// One line without its newline: time, severity, what happened, and the fields in their order.
///
/// {"time":"…","level":"warning","kind":"retry_scheduled","route":"all",…}
/// 2026-01-01T00:00:00.000000Z WARNING retry_scheduled route=all …
[[nodiscard]] std::string format_line(LineFormat format, Timestamp time, Severity severity,
                                      std::string_view kind, const Fields& fields);

/// The fields of a notice, named as there; those that do not apply are left out.
[[nodiscard]] Fields fields_of(const Notice& notice);

struct LogOptions {
  LineFormat format = LineFormat::json;
  Severity level = Severity::info;  ///< records below it are dropped
  std::string path;                 ///< of a file to append to; empty: standard error
};

/// Where records go.
///
/// Ownership: borrows the clock. Thread safety: any thread.
/// A line that cannot be written is lost; logging never fails its caller.
class Log {
 public:
  Log(LogOptions options, const Clock& clock);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(Severity severity, std::string_view kind, const Fields& fields);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// Ownership: borrows the log.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(Log& log) : log_(&log) {}
  void notice(const Notice& notice) override;

 private:
  Log* log_;
};

/// "2026-01-01T00:00:00.000000Z", for people and JSON.
[[nodiscard]] std::string time_text(Timestamp time);

}  // namespace postrider::observe

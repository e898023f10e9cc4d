// spdlog brings severities, the thread-safe sinks and the flushing. Its patterns do not escape, so
// a line arrives here complete and the pattern is the line itself.

#include "observe/log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/timestamp_text.hpp"

namespace postrider::observe {
namespace {

spdlog::level::level_enum level_of(Severity severity) {
  switch (severity) {
    case Severity::debug:
      return spdlog::level::debug;
    case Severity::info:
      return spdlog::level::info;
    case Severity::warning:
      return spdlog::level::warn;
    case Severity::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::sink_ptr sink_of(const std::string& path) {
  if (path.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
}

template <class Value>
void add(Fields& fields, std::string_view name, const std::optional<Value>& value) {
  if (!value) return;
  if constexpr (std::is_integral_v<Value>) {
    fields.emplace_back(name, std::int64_t{*value});
  } else {
    fields.emplace_back(name, value->value().to_string());
  }
}

void add(Fields& fields, std::string_view name, const std::string& text) {
  if (!text.empty()) fields.emplace_back(name, text);
}

}  // namespace

class Log::Engine {
 public:
  Engine(const LogOptions& options, const Clock& clock)
      : format_(options.format), clock_(&clock), logger_("postrider", sink_of(options.path)) {
    logger_.set_pattern("%v");
    logger_.set_level(level_of(options.level));
    logger_.flush_on(spdlog::level::trace);  // the last line before a crash is the one wanted
    logger_.set_error_handler([](const std::string&) {});
  }

  void write(Severity severity, std::string_view kind, const Fields& fields) {
    const auto level = level_of(severity);
    if (!logger_.should_log(level)) return;
    logger_.log(
        level, spdlog::string_view_t(format_line(format_, clock_->wall(), severity, kind, fields)));
  }

 private:
  const LineFormat format_;
  const Clock* clock_;
  spdlog::logger logger_;
};

Log::Log(LogOptions options, const Clock& clock)
    : engine_(std::make_unique<Engine>(options, clock)) {}
Log::~Log() = default;

void Log::write(Severity severity, std::string_view kind, const Fields& fields) {
  engine_->write(severity, kind, fields);
}

Fields fields_of(const Notice& notice) {
  Fields fields;
  add(fields, "route", notice.route);
  add(fields, "job", notice.job);
  add(fields, "queue", notice.queue);
  add(fields, "schedule", notice.schedule);
  if (notice.slot_at) fields.emplace_back("slot_at", timestamp_text(*notice.slot_at));
  add(fields, "event_id", notice.event_id);
  if (notice.event_seq) fields.emplace_back("event_seq", std::to_string(notice.event_seq->value()));
  add(fields, "event_type", notice.event_type);
  add(fields, "delivery_id", notice.delivery_id);
  add(fields, "dispatch_id", notice.dispatch_id);
  if (notice.status) fields.emplace_back("status", std::string(to_string(*notice.status)));
  add(fields, "attempts", notice.attempts);
  if (notice.wait) fields.emplace_back("wait_ms", std::int64_t{notice.wait->count()});
  if (notice.partition) {
    fields.emplace_back("partition", std::int64_t{notice.partition->value()});
  }
  add(fields, "crashes", notice.crashes);
  add(fields, "rows", notice.rows);
  add(fields, "code", notice.code);
  add(fields, "detail", notice.detail);
  return fields;
}

void LogObserver::notice(const Notice& notice) {
  log_->write(severity_of(notice.kind), to_string(notice.kind), fields_of(notice));
}

}  // namespace postrider::observe

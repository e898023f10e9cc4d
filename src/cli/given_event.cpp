#include "cli/given_event.hpp"

#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "cli/given.hpp"
#include "config/duration.hpp"
#include "config/time_text.hpp"

namespace postrider::cli {
namespace {

constexpr milliseconds longest_delay = std::chrono::hours(24 * 3650);

Error unusable_option(std::string message) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(message), "cli", ""};
}

Result<Headers> headers_of(const std::vector<std::string>& given) {
  Headers headers;
  for (const auto& header : given) {
    const auto equals = header.find('=');
    if (equals == std::string::npos) {
      return unusable_option("a --header has no '='. Write NAME=VALUE.");
    }
    if (!headers.emplace(header.substr(0, equals), header.substr(equals + 1)).second) {
      return unusable_option(
          fmt::format("header {} is given twice. Remove one.", header.substr(0, equals)));
    }
  }
  return headers;
}

// One byte more than the limit is enough to know that it is too much.
std::string read_all(std::istream& stream) {
  std::string content(EventLimits{}.payload_bytes + 1, '\0');
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(stream.gcount()));
  return content;
}

}  // namespace

Result<std::string> payload_of(const std::string& given) {
  if (given == "-") return read_all(std::cin);
  if (!given.starts_with('@')) return given;
  std::ifstream file(given.substr(1), std::ios::binary);
  auto content = read_all(file);
  if (!file.is_open() || file.bad()) {
    return Error{ErrorCode::storage_failed, Disposition::reject,
                 given.substr(1) + " cannot be read. Check its path and rights.", "cli", ""};
  }
  return content;
}

Result<DueTime> due_of(const std::optional<std::string>& at,
                       const std::optional<std::string>& delay) {
  DueTime due;
  if (delay) {
    const auto wait = config::parse_duration(*delay);
    if (!wait || *wait > longest_delay) {
      return unusable_option("--delay is no duration up to 3650d. Write 500ms, 5s, 2m, 1h or 7d.");
    }
    due.in = *wait;
  }
  if (at) {
    due.at = config::parse_time(*at);
    if (!due.at) {
      return unusable_option("--available-at is no time. Write 2026-12-01T08:00:00Z or ...+02:00.");
    }
  }
  return due;
}

Result<NewEvent> event_of(const EventOptions& options) {
  NewEvent event;
  event.type = options.type;
  event.content_type = options.content_type;
  event.aggregate_version = options.aggregate_version;
  if (!options.aggregate.empty()) {
    auto aggregate = aggregate_of(options.aggregate);
    if (!aggregate) return aggregate.error();
    event.aggregate = std::move(aggregate).value();
  }
  if (!options.id.empty()) {
    const auto id = Uuid::parse(options.id);
    if (!id) return unusable_option("--id is no UUID. Leave it out for a new one.");
    event.id = EventId(*id);
  }
  const auto due = due_of(options.available_at, options.delay);
  if (!due) return due.error();
  event.available_at = due->at;
  if (options.delay) event.available_at = system_clock().wall() + due->in;
  auto headers = headers_of(options.headers);
  if (!headers) return headers.error();
  event.headers = std::move(headers).value();
  auto payload = payload_of(options.payload);
  if (!payload) return payload.error();
  event.payload = std::move(payload).value();
  if (auto checked = check(event); !checked) return checked.error();
  return event;
}

}  // namespace postrider::cli

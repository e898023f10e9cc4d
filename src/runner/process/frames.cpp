#include "runner/process/frames.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace postrider::runner {
namespace {

enum class Kind : std::uint8_t { task = 1, stop, answer, outcome, question };

class Writer {
 public:
  explicit Writer(Kind kind) { bytes_.push_back(static_cast<char>(kind)); }

  template <class Number>
  void number(Number value) {
    const auto wide = static_cast<std::int64_t>(value);
    raw(&wide, sizeof wide);
  }
  void text(std::string_view text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    raw(&size, sizeof size);
    bytes_.append(text);
  }
  template <class Tag>
  void id(const Named<Uuid, Tag>& id) {
    raw(id.value().bytes().data(), id.value().bytes().size());
  }
  void duration(milliseconds duration) { number(duration.count()); }
  void time(Timestamp time) { number(time.time_since_epoch().count()); }
  template <class T, class Write>
  void optional(const std::optional<T>& value, Write write) {
    number(value ? 1 : 0);
    if (value) write(*value);
  }

  /// With its length in front.
  [[nodiscard]] std::string frame() && {
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
    return frame + bytes_;
  }

 private:
  void raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

/// After the first thing that is missing everything reads as empty, and `is_whole` says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number = std::int64_t>
  Number number() {
    std::int64_t wide = 0;
    raw(&wide, sizeof wide);
    return static_cast<Number>(wide);
  }
  std::string text() {
    std::uint32_t size = 0;
    raw(&size, sizeof size);
    if (size > rest_.size()) {
      fail();
      return {};
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  template <class Id>
  Id id() {
    std::array<std::uint8_t, 16> bytes{};
    raw(bytes.data(), bytes.size());
    return Id(Uuid(bytes));
  }
  milliseconds duration() { return milliseconds(number()); }
  Timestamp time() { return Timestamp(std::chrono::microseconds(number())); }
  bool flag() { return number() != 0; }
  /// How many of something follow that take at least a byte each.
  std::size_t count() {
    const auto count = number<std::size_t>();
    if (count <= rest_.size()) return count;
    fail();
    return 0;
  }
  template <class Read>
  auto optional(Read read) -> std::optional<std::invoke_result_t<Read>> {
    if (!flag()) return std::nullopt;
    return read();
  }
  template <class Enum>
  Enum word(Enum most) {
    const auto value = number();
    if (value >= 0 && value <= static_cast<std::int64_t>(most)) return static_cast<Enum>(value);
    fail();
    return Enum{};
  }
  [[nodiscard]] bool is_whole() const { return !failed_ && rest_.empty(); }

 private:
  void raw(void* data, std::size_t size) {
    if (size > rest_.size()) return fail();
    std::memcpy(data, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  std::string_view rest_;
  bool failed_ = false;
};

// ---- a task

void write_job(Writer& out, const Job& job) {
  out.id(job.delivery_id);
  out.id(job.event_id);
  out.number(job.event_seq.value());
  out.text(job.route);
  out.text(job.job);
  out.text(job.queue);
  out.number(job.attempts);
  out.number(job.retry_delays.size());
  for (const auto delay : job.retry_delays)
    out.duration(delay);
}

// What a handler can see; the rest of the row stays with the worker.
Job read_job(Reader& in) {
  Job job;
  job.delivery_id = in.id<DeliveryId>();
  job.event_id = in.id<EventId>();
  job.event_seq = Seq(in.number());
  job.route = in.text();
  job.job = in.text();
  job.queue = in.text();
  job.attempts = in.number<int>();
  for (auto left = in.count(); left > 0; --left)
    job.retry_delays.push_back(in.duration());
  return job;
}

void write_event(Writer& out, const Event& event) {
  out.number(event.seq.value());
  out.id(event.id);
  out.optional(event.aggregate, [&](const Aggregate& aggregate) {
    out.text(aggregate.type);
    out.text(aggregate.id);
  });
  out.optional(event.aggregate_version, [&](std::int64_t version) { out.number(version); });
  out.text(event.type);
  out.text(event.payload);
  out.text(event.content_type);
  out.number(event.headers.size());
  for (const auto& [name, value] : event.headers) {
    out.text(name);
    out.text(value);
  }
  out.time(event.created_at);
  out.optional(event.available_at, [&](Timestamp at) { out.time(at); });
}

Event read_event(Reader& in) {
  Event event;
  event.seq = Seq(in.number());
  event.id = in.id<EventId>();
  event.aggregate = in.optional([&] {
    auto type = in.text();
    return Aggregate{std::move(type), in.text()};
  });
  event.aggregate_version = in.optional([&] { return in.number(); });
  event.type = in.text();
  event.payload = in.text();
  event.content_type = in.text();
  for (auto left = in.count(); left > 0; --left) {
    auto name = in.text();
    event.headers.emplace(std::move(name), in.text());
  }
  event.created_at = in.time();
  event.available_at = in.optional([&] { return in.time(); });
  return event;
}

std::string encode_frame(const Task& task) {
  Writer out(Kind::task);
  write_job(out, task.job);
  out.id(task.dispatch_id);
  out.text(task.checkpoint);
  out.duration(task.until_timeout);
  out.text(task.malformed);
  out.number(task.event ? 1 : 0);
  if (task.event) write_event(out, *task.event);
  return std::move(out).frame();
}

Task read_task(Reader& in) {
  Task task;
  task.job = read_job(in);
  task.dispatch_id = in.id<DispatchId>();
  task.checkpoint = in.text();
  task.until_timeout = in.duration();
  task.malformed = in.text();
  if (in.flag()) task.event = std::make_shared<const Event>(read_event(in));
  return task;
}

// ---- the others

std::string encode_frame(const StopFrame& stop) {
  Writer out(Kind::stop);
  out.id(stop.dispatch_id);
  return std::move(out).frame();
}

std::string encode_frame(const AnswerFrame& answer) {
  Writer out(Kind::answer);
  out.number(answer.state.ok() ? 1 : 0);
  if (answer.state) {
    out.number(answer.state->current ? 1 : 0);
    out.number(answer.state->cancel_requested ? 1 : 0);
    out.duration(answer.state->until_timeout);
  } else {
    const auto& error = answer.state.error();
    out.number(error.code);
    out.number(error.disposition);
    out.text(error.message);
    out.text(error.origin);
    out.text(error.native_code);
  }
  return std::move(out).frame();
}

AnswerFrame read_answer(Reader& in) {
  if (in.flag()) {
    AttemptState state;
    state.current = in.flag();
    state.cancel_requested = in.flag();
    state.until_timeout = in.duration();
    return {state};
  }
  Error error;
  error.code = in.word(ErrorCode::internal);
  error.disposition = in.word(Disposition::stop);
  error.message = in.text();
  error.origin = in.text();
  error.native_code = in.text();
  return {std::move(error)};
}

std::string encode_frame(const OutcomeFrame& ended) {
  Writer out(Kind::outcome);
  out.id(ended.dispatch_id);
  out.number(ended.outcome.kind);
  out.text(ended.outcome.code);
  out.text(ended.outcome.detail);
  out.optional(ended.outcome.delay, [&](milliseconds delay) { out.duration(delay); });
  return std::move(out).frame();
}

OutcomeFrame read_outcome(Reader& in) {
  OutcomeFrame ended;
  ended.dispatch_id = in.id<DispatchId>();
  ended.outcome.kind = in.word(JobOutcome::Kind::cancelled);
  ended.outcome.code = in.text();
  ended.outcome.detail = in.text();
  ended.outcome.delay = in.optional([&] { return in.duration(); });
  return ended;
}

std::string encode_frame(const QuestionFrame& question) {
  const auto& update = question.update;
  Writer out(Kind::question);
  out.id(update.delivery_id);
  out.id(update.dispatch_id);
  out.optional(update.extend, [&](milliseconds extend) { out.duration(extend); });
  out.optional(update.percent, [&](int percent) { out.number(percent); });
  out.optional(update.note, [&](const std::string& note) { out.text(note); });
  out.optional(update.checkpoint, [&](const std::string& cursor) { out.text(cursor); });
  return std::move(out).frame();
}

QuestionFrame read_question(Reader& in) {
  QuestionFrame question;
  auto& update = question.update;
  update.delivery_id = in.id<DeliveryId>();
  update.dispatch_id = in.id<DispatchId>();
  update.extend = in.optional([&] { return in.duration(); });
  update.percent = in.optional([&] { return in.number<int>(); });
  update.note = in.optional([&] { return in.text(); });
  update.checkpoint = in.optional([&] { return in.text(); });
  return question;
}

template <class Frame, class Content>
std::optional<Frame> whole(const Reader& in, Content content) {
  if (!in.is_whole()) return std::nullopt;
  return Frame(std::move(content));
}

Kind kind_of(std::string_view body) {
  return body.empty() ? Kind{} : static_cast<Kind>(body.front());
}

}  // namespace

std::string encode(const FrameToChild& frame) {
  return std::visit([](const auto& content) { return encode_frame(content); }, frame);
}

std::string encode(const FrameFromChild& frame) {
  return std::visit([](const auto& content) { return encode_frame(content); }, frame);
}

std::optional<FrameToChild> decode_to_child(std::string_view body) {
  Reader in(body.substr(std::min<std::size_t>(1, body.size())));
  switch (kind_of(body)) {
    case Kind::task: {
      auto task = read_task(in);
      return whole<FrameToChild>(in, std::move(task));
    }
    case Kind::stop: {
      const auto stop = in.id<DispatchId>();
      return whole<FrameToChild>(in, StopFrame{stop});
    }
    case Kind::answer: {
      auto answer = read_answer(in);
      return whole<FrameToChild>(in, std::move(answer));
    }
    default:
      return std::nullopt;
  }
}

std::optional<FrameFromChild> decode_from_child(std::string_view body) {
  Reader in(body.substr(std::min<std::size_t>(1, body.size())));
  switch (kind_of(body)) {
    case Kind::outcome: {
      auto outcome = read_outcome(in);
      return whole<FrameFromChild>(in, std::move(outcome));
    }
    case Kind::question: {
      auto question = read_question(in);
      return whole<FrameFromChild>(in, std::move(question));
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::size_t> FrameBuffer::length() const {
  std::uint32_t length = 0;
  if (bytes_.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes_.data(), sizeof length);
  return length;
}

std::optional<std::string> FrameBuffer::next() {
  const auto size = length();
  constexpr auto head = sizeof(std::uint32_t);
  if (!size || *size > most_bytes_ || bytes_.size() < head + *size) return std::nullopt;
  auto body = bytes_.substr(head, *size);
  bytes_.erase(0, head + *size);
  return body;
}

bool FrameBuffer::is_broken() const {
  const auto size = length();
  return size && *size > most_bytes_;
}

}  // namespace postrider::runner

#include "publisher/file/file_publisher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>

#include "base/descriptor.hpp"
#include "values/event_line.hpp"

namespace postrider::file {
namespace {

// A line that was given and has no outcome yet. The lines stand in `text_` one behind the other.
struct InFlight {
  AttemptId attempt;
  std::size_t end = 0;  // of its line in `text_`
  Instant due;
};

class FilePublisher final : public Publisher {
 public:
  FilePublisher(FileOptions options, FileCalls calls)
      : window_(std::clamp<std::size_t>(options.window, 1, 10'000)),
        regular_(!options.path.empty()),
        sink_(regular_ ? make_path_sink(std::move(options.path), calls)
                       : make_stream_sink(STDOUT_FILENO, "standard output", calls)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  PublisherTraits traits() const override {
    PublisherTraits traits;
    traits.name = regular_ ? "file" : "stdout";
    traits.window = window_;
    traits.durable = regular_;
    return traits;
  }

  Result<void> submit(std::span<const Message> messages, Deadline) override {
    if (auto opened = sink_->open(); !opened) return opened;
    for (const auto& message : messages)
      accept(message);
    return {};
  }

  std::vector<MessageOutcome> poll(Deadline deadline) override {
    do {
      if (in_flight_.empty()) {
        if (ready_.empty()) wait_for_wake(deadline);
        break;
      }
      append(std::min({deadline, first_timeout()}, by_remaining));
      expire();
    } while (ready_.empty() && !deadline.passed() && !woken());
    drain_wake();
    return std::exchange(ready_, {});
  }

  void wake() noexcept override { [[maybe_unused]] const int rc = ::eventfd_write(wake_.get(), 1); }

  std::vector<MessageOutcome> close(Deadline) override {
    give_up(Outcome::unknown("closed", "The destination was closed before the line was written."));
    sink_->close();
    return std::exchange(ready_, {});
  }

 private:
  static bool by_remaining(const Deadline& a, const Deadline& b) {
    return a.remaining() < b.remaining();
  }

  void accept(const Message& message) {
    if (message.event->payload.size() > EventLimits::most_payload_bytes) {
      ready_.push_back({message.attempt, Outcome::rejected("too_large",
                                                           "The payload is larger "
                                                           "than 64 MiB.")});
      return;
    }
    auto line = event_line(*message.event);
    if (!line) {
      ready_.push_back({message.attempt, Outcome::rejected("not_utf8", line.error().message)});
      return;
    }
    text_ += *line;
    const auto due = std::chrono::steady_clock::now() + message.timeout;
    in_flight_.push_back({message.attempt, text_.size(), due});
  }

  void append(Deadline deadline) {
    const auto rest = std::string_view(text_).substr(written_);
    const auto appended = sink_->append(rest, deadline, wake_.get());
    written_ += appended.accepted;
    while (!in_flight_.empty() && in_flight_.front().end <= written_)
      finish(Outcome::confirmed());
    if (appended.error) fail(*appended.error, written_ + appended.ambiguous);
    forget_finished();
  }

  // Lines that may have arrived, as a whole or in part, are unknown; the others surely have not.
  void fail(const Error& error, std::size_t reached) {
    std::size_t begin = front_begin_;
    while (!in_flight_.empty()) {
      const bool begun = begin < reached;
      begin = in_flight_.front().end;
      finish(begun ? Outcome::lost_connection(error.message)
                   : Outcome::unavailable(to_string(error.code), error.message));
    }
  }

  // Only a stream or a lock that somebody else holds can keep a line waiting for so long.
  void expire() {
    if (in_flight_.empty() || in_flight_.front().due > std::chrono::steady_clock::now()) return;
    if (written_ > front_begin_) sink_->abandon_line();
    give_up_stuck();
  }

  void give_up_stuck() {
    static constexpr std::string_view detail =
        "Nothing could be written for the whole timeout. Let its reader read, or its lock go.";
    while (!in_flight_.empty()) {
      const bool begun = written_ > front_begin_;
      finish(begun ? Outcome::lost_connection(detail) : Outcome::unavailable("stuck", detail));
    }
    forget_finished();
  }

  void give_up(const Outcome& outcome) {
    if (written_ > front_begin_) sink_->abandon_line();
    while (!in_flight_.empty())
      finish(outcome);
    forget_finished();
  }

  void finish(Outcome outcome) {
    ready_.push_back({in_flight_.front().attempt, std::move(outcome)});
    front_begin_ = in_flight_.front().end;
    in_flight_.pop_front();
  }

  // A stream may never run empty, so the text is not left to grow until then.
  void forget_finished() {
    text_.erase(0, front_begin_);
    for (auto& line : in_flight_)
      line.end -= front_begin_;
    written_ = std::max(written_, front_begin_) - front_begin_;
    front_begin_ = 0;
  }

  Deadline first_timeout() const {
    const auto left =
        std::chrono::ceil<milliseconds>(in_flight_.front().due - std::chrono::steady_clock::now());
    return Deadline::after(std::max(left, milliseconds::zero()));
  }

  bool wait_for_wake(Deadline deadline) const {
    pollfd watched{wake_.get(), POLLIN, 0};
    const auto patience = std::min<std::int64_t>(deadline.remaining().count(), INT_MAX);
    return ::poll(&watched, 1, static_cast<int>(patience)) > 0;
  }

  bool woken() const { return wait_for_wake(Deadline::after(milliseconds::zero())); }

  void drain_wake() {
    eventfd_t count = 0;
    [[maybe_unused]] const int rc = ::eventfd_read(wake_.get(), &count);
  }

  const std::size_t window_;
  const bool regular_;
  const std::unique_ptr<LineSink> sink_;
  const Descriptor wake_;
  std::string text_;
  std::size_t written_ = 0;      // bytes of `text_` that the sink has accepted
  std::size_t front_begin_ = 0;  // where the first line without outcome starts
  std::deque<InFlight> in_flight_;
  std::vector<MessageOutcome> ready_;
};

}  // namespace

std::unique_ptr<Publisher> make_file_publisher(FileOptions options, FileCalls calls) {
  return std::make_unique<FilePublisher>(std::move(options), calls);
}

}  // namespace postrider::file

namespace postrider {

std::unique_ptr<Publisher> make_file_publisher(FileOptions options) {
  return file::make_file_publisher(std::move(options), file::system_calls());
}

}  // namespace postrider

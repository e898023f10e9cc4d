// The whole publisher runs in the thread that polls it: libcurl's multi interface drives all
// connections, and nothing moves between two polls.
//
//   submit ──▶ queue ──(a free connection, its aggregate idle, the pace)──▶ transfer ──▶ outcome

#include <postrider/publisher/http.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <curl/curl.h>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "publisher/common/message_limits.hpp"
#include "publisher/http/http_options.hpp"
#include "publisher/http/http_pace.hpp"
#include "publisher/http/http_transfer.hpp"

namespace postrider {
namespace http {
namespace {

Instant now() {
  return system_clock().steady();
}

/// A message that waits for its turn.
struct Waiting {
  Message message;
  HeaderLines lines;
  std::optional<std::string> key;  ///< requests of one aggregate are made one after the other
  Instant expires_at;
};

struct FreeMulti {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};
using Multi = std::unique_ptr<CURLM, FreeMulti>;

Multi make_multi(std::size_t connections) {
  Multi multi(curl_multi_init());
  POSTRIDER_ASSERT(multi != nullptr);
  curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
  curl_multi_setopt(multi.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  return multi;
}

class HttpPublisher final : public Publisher {
 public:
  HttpPublisher(HttpOptions options, const Clock& clock)
      : faults_(validate(options)),
        window_(std::max<std::size_t>(1, std::min(options.window, options.connections))),
        clock_(clock),
        pace_(options.rate),
        gone_after_(options.gone_after) {
    if (!faults_.empty()) return;
    settings_ = settings_of(std::move(options)).value();
    multi_ = make_multi(window_);
  }
  ~HttpPublisher() override { (void)close(Deadline::after(milliseconds(0))); }

  PublisherTraits traits() const override;
  Result<void> submit(std::span<const Message> messages, Deadline deadline) override;
  std::vector<MessageOutcome> poll(Deadline deadline) override;
  void wake() noexcept override;
  std::vector<MessageOutcome> close(Deadline deadline) override;

 private:
  void enqueue(const Message& message);
  void begin_what_may();
  void begin(Waiting& waiting);
  void collect_ended();
  void end(Transfer& transfer, CURLcode code);
  [[nodiscard]] Outcome patient_with_gone(Outcome outcome);
  void give_back_queue(const Outcome& outcome);
  void expire_queue();
  [[nodiscard]] int time_to_wait(Deadline deadline) const;
  void report(AttemptId attempt, Outcome outcome) {
    outcomes_.push_back({attempt, std::move(outcome)});
  }

  const std::vector<std::string> faults_;
  const std::size_t window_;
  const Clock& clock_;
  std::optional<RequestSettings> settings_;
  std::deque<Waiting> queue_;
  std::vector<std::unique_ptr<Transfer>> idle_;
  std::map<Transfer*, std::unique_ptr<Transfer>> running_;
  std::set<std::string> busy_keys_;
  Pace pace_;
  const milliseconds gone_after_;
  std::optional<Instant> gone_since_;
  std::vector<MessageOutcome> outcomes_;

  std::atomic<bool> woken_{false};
  Mutex multi_mutex_;  ///< `wake` comes from other threads, and `close` makes a new one
  Multi multi_;
};

PublisherTraits HttpPublisher::traits() const {
  PublisherTraits traits;
  traits.name = "http";
  traits.window = window_;
  traits.one_address = true;
  return traits;
}

Result<void> HttpPublisher::submit(std::span<const Message> messages, Deadline /*deadline*/) {
  if (!faults_.empty()) return options_error(faults_);
  for (const auto& message : messages)
    enqueue(message);
  begin_what_may();
  return {};
}

void HttpPublisher::enqueue(const Message& message) {
  const auto& event = *message.event;
  if (auto fits = publisher::check_bytes("The payload", event.payload.size(),
                                         EventLimits::most_payload_bytes);
      !fits) {
    return report(message.attempt, postrider::outcome_of(fits.error()));
  }
  auto lines = header_lines(event, settings_->headers);
  if (!lines) return report(message.attempt, postrider::outcome_of(lines.error()));
  auto key = event.aggregate ? std::optional(aggregate_key(*event.aggregate)) : std::nullopt;
  queue_.push_back({message, std::move(lines).value(), std::move(key), now() + message.timeout});
}

/// In the order given, except that a message whose aggregate is busy is passed by others.
void HttpPublisher::begin_what_may() {
  std::set<std::string> passed;
  for (auto waiting = queue_.begin(); waiting != queue_.end();) {
    if (running_.size() >= window_ || pace_.wait(now()) > milliseconds(0)) return;
    const auto& key = waiting->key;
    if (key && (busy_keys_.contains(*key) || passed.contains(*key))) {
      passed.insert(*key);
      ++waiting;
      continue;
    }
    begin(*waiting);
    waiting = queue_.erase(waiting);
  }
}

void HttpPublisher::begin(Waiting& waiting) {
  std::unique_ptr<Transfer> transfer;
  if (idle_.empty()) {
    transfer = std::make_unique<Transfer>(*settings_);
  } else {
    transfer = std::move(idle_.back());
    idle_.pop_back();
  }
  transfer->begin(waiting.message, waiting.lines, clock_.wall());
  pace_.on_begin(now());
  if (waiting.key) busy_keys_.insert(*waiting.key);
  const auto added = curl_multi_add_handle(multi_.get(), transfer->handle());
  POSTRIDER_ASSERT(added == CURLM_OK);
  auto* const address = transfer.get();
  running_.emplace(address, std::move(transfer));
}

std::vector<MessageOutcome> HttpPublisher::poll(Deadline deadline) {
  for (;;) {
    expire_queue();
    begin_what_may();
    int running = 0;
    if (multi_) curl_multi_perform(multi_.get(), &running);
    collect_ended();
    begin_what_may();
    if (!outcomes_.empty() || woken_.exchange(false) || deadline.passed() || !multi_) {
      return std::exchange(outcomes_, {});
    }
    curl_multi_poll(multi_.get(), nullptr, 0, time_to_wait(deadline), nullptr);
  }
}

void HttpPublisher::collect_ended() {
  int left = 0;
  while (multi_) {
    const auto* const message = curl_multi_info_read(multi_.get(), &left);
    if (message == nullptr) return;
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    const auto code =
        message->data.result;  // before the handle is removed, and the message with it
    end(*transfer, code);
  }
}

void HttpPublisher::end(Transfer& transfer, CURLcode code) {
  curl_multi_remove_handle(multi_.get(), transfer.handle());
  const auto attempt = transfer.attempt();
  if (const auto& aggregate = transfer.event().aggregate) {
    busy_keys_.erase(aggregate_key(*aggregate));
  }
  const auto outcome = patient_with_gone(transfer.end(code, clock_.wall()));
  auto ended = running_.extract(&transfer);
  idle_.push_back(std::move(ended.mapped()));
  report(attempt, outcome);
  const auto kind = outcome.kind;
  if (kind == OutcomeKind::unavailable || kind == OutcomeKind::throttled ||
      kind == OutcomeKind::gone) {
    give_back_queue(outcome);
  }
}

/// Deployments make an endpoint vanish for a while; some wish to see it gone for longer.
Outcome HttpPublisher::patient_with_gone(Outcome outcome) {
  if (outcome.kind != OutcomeKind::gone) {
    // Only an answer says that it is there; an outage says nothing.
    const bool answered = outcome.kind != OutcomeKind::unavailable &&
                          (outcome.kind != OutcomeKind::unknown || outcome.answered);
    if (answered) gone_since_.reset();
    return outcome;
  }
  if (!gone_since_) gone_since_ = clock_.steady();
  if (clock_.steady() - *gone_since_ >= gone_after_) return outcome;
  return Outcome::refused("gone", outcome.detail);
}

/// The endpoint takes nothing now: what was not begun goes back with it.
void HttpPublisher::give_back_queue(const Outcome& outcome) {
  // `gone` is the word of one answer; what was not sent has none, and waits.
  const auto queued = outcome.kind == OutcomeKind::gone
                          ? Outcome::unavailable(outcome.code, outcome.detail)
                          : outcome;
  for (const auto& waiting : std::exchange(queue_, {}))
    report(waiting.message.attempt, queued);
}

void HttpPublisher::expire_queue() {
  const auto at = now();
  std::erase_if(queue_, [&](const Waiting& waiting) {
    if (waiting.expires_at > at) return false;
    report(waiting.message.attempt,
           Outcome::unavailable("stalled", settings_->authority +
                                               " took earlier requests too slowly to send this "
                                               "one in time. Raise the timeout, or the rate."));
    return true;
  });
}

int HttpPublisher::time_to_wait(Deadline deadline) const {
  auto wait = deadline.remaining();
  const auto at = now();
  const bool free = running_.size() < window_ && !queue_.empty();
  if (free && pace_.wait(at) > milliseconds(0)) wait = std::min(wait, pace_.wait(at));
  for (const auto& waiting : queue_) {
    wait = std::min(wait, std::chrono::ceil<milliseconds>(waiting.expires_at - at));
  }
  const std::int64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, most));
}

void HttpPublisher::wake() noexcept {
  woken_ = true;
  const MutexLock lock(multi_mutex_);
  if (multi_) curl_multi_wakeup(multi_.get());
}

std::vector<MessageOutcome> HttpPublisher::close(Deadline /*deadline*/) {
  const auto closed =
      Outcome::unknown("closed", "The destination was closed before the endpoint answered.");
  for (const auto& [address, transfer] : running_) {
    curl_multi_remove_handle(multi_.get(), transfer->handle());
    report(transfer->attempt(), closed);
  }
  for (const auto& waiting : queue_)
    report(waiting.message.attempt, closed);
  running_.clear();
  idle_.clear();
  queue_.clear();
  busy_keys_.clear();
  if (multi_) {
    auto fresh = make_multi(window_);
    const MutexLock lock(multi_mutex_);
    multi_ = std::move(fresh);  // with the old one its connections end
  }
  return std::exchange(outcomes_, {});
}

}  // namespace
}  // namespace http

std::unique_ptr<Publisher> make_http_publisher(HttpOptions options, const Clock& clock) {
  return std::make_unique<http::HttpPublisher>(std::move(options), clock);
}

}  // namespace postrider

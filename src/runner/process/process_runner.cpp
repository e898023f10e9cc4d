#include "runner/process/process_runner.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>
#include <variant>

#include <postrider/runner/process.hpp>

#include "base/assert.hpp"
#include "runner/process/child.hpp"

namespace postrider {
namespace {

Error unusable_runner(ErrorCode code, std::string message) {
  return {code, Disposition::stop, std::move(message), "worker", ""};
}

std::optional<Error> fault_of(const Handlers& handlers) {
  const auto faults = handlers.validate();
  if (faults.empty() && !handlers.jobs().empty()) return std::nullopt;
  if (faults.empty()) {
    return unusable_runner(
        ErrorCode::config_invalid,
        "no handler is bound. Bind one for each job of the queues of this worker.");
  }
  std::string message = "the handlers cannot be used:";
  for (const auto& fault : faults)
    message += " " + fault;
  return unusable_runner(ErrorCode::config_invalid, std::move(message));
}

bool has_one_thread() {
  std::error_code error;
  std::size_t threads = 0;
  for (auto task = std::filesystem::directory_iterator("/proc/self/task", error);
       task != std::filesystem::directory_iterator(); task.increment(error))
    ++threads;
  return threads <= 1;
}

}  // namespace

Result<std::unique_ptr<JobRunner>> make_process_runner(Handlers handlers, std::size_t slots,
                                                       AttemptDesk& desk,
                                                       const ProcessOptions& options) {
  POSTRIDER_ASSERT(slots >= 1 && slots <= most_runner_processes);
  if (auto fault = fault_of(handlers)) return *std::move(fault);
  if (!has_one_thread()) {
    return unusable_runner(
        ErrorCode::unsupported,
        "this process has threads, so no children can be forked from it safely. Make the worker "
        "before the first thread, or run its jobs in threads.");
  }
  auto zygote = runner::Zygote::start(
      slots, [&](Descriptor socket) { runner::run_child(std::move(socket), handlers); });
  if (!zygote) return std::move(zygote).error();
  return std::unique_ptr<JobRunner>(std::make_unique<runner::ProcessRunner>(
      std::move(zygote).value(), std::move(handlers), slots, desk, options.cgroup_folder));
}

namespace runner {
namespace {

// Whatever a damaged child made of it, it is stored and shown.
JobOutcome cleaned(JobOutcome outcome) {
  auto clean = JobOutcome::fail(outcome.code, outcome.detail);
  clean.kind = outcome.kind;
  if (outcome.code.empty()) clean.code.clear();
  if (outcome.delay) {
    clean.delay = std::clamp(*outcome.delay, milliseconds(1), JobOutcome::most_delay);
  }
  return clean;
}

bool is_sound(const AttemptUpdate& update) {
  const bool extends = !update.extend || *update.extend > milliseconds(0);
  const bool counts = !update.percent || (*update.percent >= 0 && *update.percent <= 100);
  const bool notes = !update.note || update.note->size() <= AttemptUpdate::most_note_bytes;
  const bool keeps =
      !update.checkpoint || update.checkpoint->size() <= AttemptUpdate::most_checkpoint_bytes;
  return extends && counts && notes && keeps;
}

}  // namespace

ProcessRunner::ProcessRunner(Zygote zygote, Handlers handlers, std::size_t slots, AttemptDesk& desk,
                             const std::string& cgroup_folder)
    : handlers_(std::move(handlers)),
      desk_(desk),
      slot_count_(slots),
      zygote_(std::move(zygote)),
      oom_(cgroup_folder),
      slots_(slots),
      reports_(slots),
      server_([this] { serve(); }),
      clerk_([this] { answer_questions(); }) {}

ProcessRunner::~ProcessRunner() {
  close();
}

JobRunnerTraits ProcessRunner::traits() const {
  JobRunnerTraits traits;
  traits.name = "process";
  traits.slots = slot_count_;
  traits.can_kill = true;
  return traits;
}

Result<void> ProcessRunner::check_job(std::string_view job) const {
  return handlers_.check_job(job);
}

void ProcessRunner::start(Task task) {
  const MutexLock lock(mutex_);
  const auto free =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.running; });
  POSTRIDER_ASSERT(free != slots_.end());
  free->running = task.dispatch_id;
  free->delivery_id = task.job.delivery_id;
  free->begun = false;
  free->task_at = free->outgoing.size();
  free->oom = oom_.mark();
  if (zygote_is_gone_) {
    return end(*free, SendRefused{"runner_gone", "no children are left; restart the worker"});
  }
  free->outgoing += encode(FrameToChild(std::move(task)));
  bell_.ring();
}

void ProcessRunner::request_stop(const DispatchId& dispatch) {
  const MutexLock lock(mutex_);
  const auto slot = slot_of(dispatch);
  if (!slot) return;
  slots_[*slot].outgoing += encode(FrameToChild(StopFrame{dispatch}));
  bell_.ring();
}

void ProcessRunner::kill(const DispatchId& dispatch) {
  const MutexLock lock(mutex_);
  const auto found = slot_of(dispatch);
  if (!found) return;
  auto& slot = slots_[*found];
  if (slot.child > 0) return zygote_.kill(*found, slot.child);
  slot.outgoing.clear();
  slot.sent = 0;
  end(slot, WorkerDeath{SIGKILL, std::nullopt, false});
}

std::vector<RunnerReport> ProcessRunner::poll(Deadline deadline) {
  return reports_.pop_all(deadline.remaining());
}

void ProcessRunner::wake() noexcept {
  reports_.interrupt();
}

// Without its control socket the zygote kills all children.
void ProcessRunner::close() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    bell_.ring();
    asked_.notify_all();
  }
  if (server_.joinable()) server_.join();
  if (clerk_.joinable()) clerk_.join();
  const MutexLock lock(mutex_);
  zygote_.close();
}

// ---- sockets

void ProcessRunner::serve() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (closing_) return;
    }
    serve_once();
  }
}

void ProcessRunner::serve_once() {
  std::vector<pollfd> watched;
  std::vector<std::uint32_t> slot_of_watched;
  {
    const MutexLock lock(mutex_);
    watched.push_back({bell_.descriptor(), POLLIN, 0});
    watched.push_back({zygote_is_gone_ ? -1 : zygote_.control(), POLLIN, 0});
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot].socket) continue;
      const bool has_more = slots_[slot].sent < slots_[slot].outgoing.size();
      const short events = has_more ? POLLIN | POLLOUT : POLLIN;
      watched.push_back({slots_[slot].socket.get(), events, 0});
      slot_of_watched.push_back(slot);
    }
  }
  if (::poll(watched.data(), watched.size(), -1) < 0) return;
  const MutexLock lock(mutex_);
  if (watched[0].revents != 0) bell_.silence();
  for (std::size_t i = 0; i < slot_of_watched.size(); ++i) {
    const auto happened = watched[i + 2].revents;
    if ((happened & POLLOUT) != 0) write(slot_of_watched[i]);
    if ((happened & ~POLLOUT) != 0) read(slot_of_watched[i]);
  }
  if (watched[1].revents != 0) take_news();
}

void ProcessRunner::take_news() {
  while (true) {
    auto received = zygote_.receive();
    if (!received) return on_zygote_gone();
    if (!received->has_value()) return;
    take(std::move(**received));
  }
}

void ProcessRunner::take(Zygote::Received received) {
  const auto& news = received.news;
  POSTRIDER_ASSERT(news.slot < slots_.size());
  if (news.kind == ZygoteNews::Kind::child_ended) return on_child_ended(news.slot, news);
  auto& slot = slots_[news.slot];
  slot.child = news.pid;
  slot.socket = std::move(received.socket);
  slot.incoming = FrameBuffer(most_frame_bytes_from_child);
  slot.asks = false;
}

// What it said before it died counts. A task that no byte of has reached it waits for the next one.
void ProcessRunner::on_child_ended(std::uint32_t number, const ZygoteNews& news) {
  auto& slot = slots_[number];
  if (slot.socket) read(number);
  slot.socket.reset();
  slot.child = -1;
  std::erase_if(questions_, [&](const Question& question) { return question.slot == number; });
  const bool keeps_task = slot.running && !slot.begun;
  slot.outgoing.erase(0, keeps_task ? slot.task_at : slot.outgoing.size());
  slot.sent = 0;
  slot.task_at = 0;
  if (!slot.running || keeps_task) return;
  WorkerDeath death;
  death.signal = news.signal;
  if (news.signal == 0) death.exit_code = news.exit_code;
  death.out_of_memory = news.signal == SIGKILL && oom_.explains_death(slot.oom);
  end(slot, death);
}

// Its children die with it; nobody can tell how.
void ProcessRunner::on_zygote_gone() {
  zygote_is_gone_ = true;
  for (auto& slot : slots_) {
    slot.socket.reset();
    slot.child = -1;
    slot.outgoing.clear();
    slot.sent = 0;
    if (slot.running) end(slot, WorkerDeath{});
  }
}

void ProcessRunner::read(std::uint32_t number) {
  std::array<char, 16U << 10U> bytes{};
  while (slots_[number].socket) {
    auto& slot = slots_[number];
    const auto size = recv(slot.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return distrust(number);
    slot.incoming.add({bytes.data(), static_cast<std::size_t>(size)});
    while (slot.socket) {
      const auto body = slot.incoming.next();
      if (!body) break;
      take(number, *body);
    }
    if (slot.incoming.is_broken()) return distrust(number);
  }
}

void ProcessRunner::write(std::uint32_t number) {
  auto& slot = slots_[number];
  while (slot.socket && slot.sent < slot.outgoing.size()) {
    const auto size = send(slot.socket.get(), slot.outgoing.data() + slot.sent,
                           slot.outgoing.size() - slot.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;  // full; or closed, which the next read sees
    slot.begun = slot.running.has_value();
    slot.sent += static_cast<std::size_t>(size);
  }
  if (slot.sent < slot.outgoing.size()) return;
  slot.outgoing.clear();
  slot.sent = 0;
}

void ProcessRunner::take(std::uint32_t slot, const std::string& body) {
  auto frame = decode_from_child(body);
  if (!frame) return distrust(slot);
  std::visit([&](auto& content) { take(slot, content); }, *frame);
}

void ProcessRunner::take(std::uint32_t number, OutcomeFrame& ended) {
  auto& slot = slots_[number];
  if (slot.running != ended.dispatch_id) return distrust(number);
  end(slot, cleaned(std::move(ended.outcome)));
}

void ProcessRunner::take(std::uint32_t number, QuestionFrame& question) {
  auto& slot = slots_[number];
  if (slot.asks || !is_sound(question.update)) return distrust(number);
  slot.asks = true;
  Question asked{number, slot.child, std::move(question.update)};
  // A thread that a handler has left behind.
  if (slot.running != asked.update.dispatch_id) return answer(asked, AttemptState{});
  asked.update.delivery_id = slot.delivery_id;
  questions_.push_back(std::move(asked));
  asked_.notify_one();
}

// It has closed its socket, or says what no sound child says: there is no use in it any more.
void ProcessRunner::distrust(std::uint32_t number) {
  auto& slot = slots_[number];
  slot.socket.reset();
  if (slot.child > 0) zygote_.kill(number, slot.child);
}

void ProcessRunner::end(Slot& slot, AttemptEnd end) {
  std::vector<RunnerReport> reports;
  reports.push_back({*std::exchange(slot.running, std::nullopt), std::move(end)});
  reports_.push(std::move(reports));
}

std::optional<std::uint32_t> ProcessRunner::slot_of(const DispatchId& dispatch) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
    if (slots_[slot].running == dispatch) return slot;
  return std::nullopt;
}

// ---- questions

void ProcessRunner::answer_questions() {
  while (const auto question = next_question()) {
    auto state = desk_.touch(question->update);
    const MutexLock lock(mutex_);
    answer(*question, std::move(state));
  }
}

// Empty when the runner closes.
std::optional<ProcessRunner::Question> ProcessRunner::next_question() {
  const MutexLock lock(mutex_);
  while (questions_.empty() && !closing_)
    asked_.wait(mutex_);
  if (closing_) return std::nullopt;
  auto question = std::move(questions_.front());
  questions_.pop_front();
  return question;
}

void ProcessRunner::answer(const Question& question, Result<AttemptState> state) {
  auto& slot = slots_[question.slot];
  if (slot.child != question.child) return;
  slot.asks = false;
  slot.outgoing += encode(FrameToChild(AnswerFrame{std::move(state)}));
  bell_.ring();
}

}  // namespace runner
}  // namespace postrider

#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <postrider/attempt.hpp>
#include <postrider/handlers.hpp>
#include <postrider/job_runner.hpp>

#include "base/bell.hpp"
#include "base/bounded_queue.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "runner/common/oom_watch.hpp"
#include "runner/process/frames.hpp"
#include "runner/process/zygote.hpp"

namespace postrider::runner {

/// The worker's side. One thread reads and writes all sockets, another one puts the questions of
/// attempts to the desk, which waits for the database.
class ProcessRunner final : public JobRunner {
 public:
  /// `cgroup_folder`: see `OomWatch`.
  ProcessRunner(Zygote zygote, Handlers handlers, std::size_t slots, AttemptDesk& desk,
                const std::string& cgroup_folder);
  ~ProcessRunner() override;

  [[nodiscard]] JobRunnerTraits traits() const override;
  [[nodiscard]] Result<void> check_job(std::string_view job) const override;
  void start(Task task) override;
  void request_stop(const DispatchId& dispatch) override;
  void kill(const DispatchId& dispatch) override;
  [[nodiscard]] std::vector<RunnerReport> poll(Deadline deadline) override;
  void wake() noexcept override;
  void close() override;

 private:
  struct Slot {
    pid_t child = -1;   // -1: it is being started
    Descriptor socket;  // none as well when the child has closed its end
    std::string outgoing;
    std::size_t sent = 0;     // of `outgoing`
    std::size_t task_at = 0;  // in `outgoing`: where the attempt's task begins
    FrameBuffer incoming{most_frame_bytes_from_child};
    std::optional<DispatchId> running;  // its attempt
    DeliveryId delivery_id;
    OomWatch::Mark oom;  // when the attempt was started
    bool begun = false;  // this child may have got a part of the attempt's task
    bool asks = false;   // and waits for the answer
  };
  struct Question {
    std::size_t slot = 0;
    pid_t child = -1;
    AttemptUpdate update;
  };

  void serve();
  void serve_once();
  void take_news() POSTRIDER_REQUIRES(mutex_);
  void take(Zygote::Received received) POSTRIDER_REQUIRES(mutex_);
  void on_child_ended(std::uint32_t slot, const ZygoteNews& news) POSTRIDER_REQUIRES(mutex_);
  void on_zygote_gone() POSTRIDER_REQUIRES(mutex_);
  void read(std::uint32_t slot) POSTRIDER_REQUIRES(mutex_);
  void write(std::uint32_t slot) POSTRIDER_REQUIRES(mutex_);
  void take(std::uint32_t slot, const std::string& body) POSTRIDER_REQUIRES(mutex_);
  void take(std::uint32_t slot, OutcomeFrame& ended) POSTRIDER_REQUIRES(mutex_);
  void take(std::uint32_t slot, QuestionFrame& question) POSTRIDER_REQUIRES(mutex_);
  void distrust(std::uint32_t slot) POSTRIDER_REQUIRES(mutex_);
  void end(Slot& slot, AttemptEnd end) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] std::optional<std::uint32_t> slot_of(const DispatchId& dispatch)
      POSTRIDER_REQUIRES(mutex_);
  void answer_questions();
  [[nodiscard]] std::optional<Question> next_question();
  void answer(const Question& question, Result<AttemptState> state) POSTRIDER_REQUIRES(mutex_);

  const Handlers handlers_;  // the children have copies; here for their names
  AttemptDesk& desk_;
  const std::size_t slot_count_;
  Mutex mutex_;
  Zygote zygote_ POSTRIDER_GUARDED_BY(mutex_);
  bool zygote_is_gone_ POSTRIDER_GUARDED_BY(mutex_) = false;
  OomWatch oom_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Slot> slots_ POSTRIDER_GUARDED_BY(mutex_);
  bool closing_ POSTRIDER_GUARDED_BY(mutex_) = false;
  Bell bell_;
  std::deque<Question> questions_ POSTRIDER_GUARDED_BY(mutex_);  // one of each child at most
  Condition asked_;
  BoundedQueue<RunnerReport> reports_;
  std::thread server_;
  std::thread clerk_;
};

}  // namespace postrider::runner

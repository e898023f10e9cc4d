#pragma once
/// \file
/// What the keeper of jobs is told (inputs) and what it asks for (actions).
///
/// Whoever drives it executes actions in the order given. At most one store call is asked for at a
/// time: the next one only after the answer to the last, or its failure, was given as input.

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_store_values.hpp>
#include <postrider/message.hpp>
#include <postrider/notice.hpp>
#include <postrider/result.hpp>

namespace postrider::core {

namespace keeper_input {

/// Start a pass. `continuous`: go on until `Stop`.
struct Begin {
  bool continuous = false;
};
/// Time has passed, nothing else.
struct Tick {};
/// Jobs may have become due.
struct Woken {};
/// Ask for nothing more; finish once the tasks in flight are answered.
struct Stop {};
struct Found {
  LostBatch batch;
};
struct HandedOut {
  TaskBatch batch;
};
/// By the order of the updates in `keeper_action::Record`.
struct Recorded {
  std::vector<RecordAnswer> answers;
};
/// The store call that was asked for last failed.
struct StoreFailed {
  Error error;
};
struct Outcomes {
  std::vector<MessageOutcome> outcomes;
};
/// The publisher of this route threw. No outcome of what it has in flight will come.
struct PublisherFailed {
  std::size_t route = 0;
  Error error;
};
/// After `Stop`: the answers are not waited for any longer.
struct GiveUp {};

}  // namespace keeper_input

using KeeperInput =
    std::variant<keeper_input::Begin, keeper_input::Tick, keeper_input::Woken, keeper_input::Stop,
                 keeper_input::Found, keeper_input::HandedOut, keeper_input::Recorded,
                 keeper_input::StoreFailed, keeper_input::Outcomes, keeper_input::PublisherFailed,
                 keeper_input::GiveUp>;

namespace keeper_action {

struct FindLost {
  LostRequest request;
};
struct HandOut {
  HandOutRequest request;
};
struct Record {
  RecordRequest request;
};
/// Give tasks to the publisher of the broker route with this index.
struct Submit {
  std::size_t route = 0;
  std::vector<Message> messages;
};
struct Notify {
  Notice notice;
};
/// The pass is over. With an error, what was not recorded will be found again.
struct Done {
  std::optional<Error> error;
};

}  // namespace keeper_action

using KeeperAction =
    std::variant<keeper_action::FindLost, keeper_action::HandOut, keeper_action::Record,
                 keeper_action::Submit, keeper_action::Notify, keeper_action::Done>;

}  // namespace postrider::core

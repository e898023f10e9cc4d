#include "conformance/publisher_builders.hpp"

#include <algorithm>

#include "conformance/skip_list.hpp"

namespace postrider::testing {

void PublisherConformance::SetUp() {
  harness_ = GetParam().make();
  if (IsSkipped()) return;  // by a harness whose server is not there
  ASSERT_NE(harness_, nullptr);
  publisher_ = harness_->open_publisher();
  ASSERT_NE(publisher_, nullptr);
}

void PublisherConformance::TearDown() {
  // Without a harness its server is missing; that is no decision of the backend.
  if (harness_ != nullptr) expect_known_skip(GetParam().name);
  publisher_.reset();
  harness_.reset();
}

std::string case_name(const ::testing::TestParamInfo<PublisherCase>& info) {
  return info.param.name;
}

void PrintTo(const PublisherCase& publisher_case, std::ostream* out) {
  *out << publisher_case.name;
}

EventPtr sendable(std::string payload) {
  static std::int64_t last_seq = 0;
  Event event;
  event.seq = Seq(++last_seq);
  event.id = EventId(fresh_uuid());
  event.aggregate = Aggregate{"order", "1"};
  event.type = "order.placed";
  event.payload = std::move(payload);
  event.content_type = "application/json";
  event.created_at = system_clock().wall();
  return std::make_shared<const Event>(std::move(event));
}

std::vector<EventPtr> sendables(std::size_t count) {
  std::vector<EventPtr> events;
  for (std::size_t i = 0; i < count; ++i)
    events.push_back(sendable(std::to_string(i)));
  return events;
}

std::vector<Message> Sender::messages_of(const std::vector<EventPtr>& events) {
  std::vector<Message> messages;
  for (const auto& event : events) {
    messages.push_back({AttemptId(++attempts_), event, DispatchId(fresh_uuid()), timeout_});
  }
  return messages;
}

std::vector<AttemptId> Sender::submit(const std::vector<EventPtr>& events) {
  const auto messages = messages_of(events);
  const auto submitted = publisher_->submit(messages, soon());
  EXPECT_TRUE(submitted.ok()) << describe(submitted.error());
  if (!submitted.ok()) return {};
  in_flight_ += messages.size();
  std::vector<AttemptId> attempts;
  for (const auto& message : messages) {
    attempts.push_back(message.attempt);
    outcomes_[message.attempt];
  }
  return attempts;
}

void Sender::record(const std::vector<MessageOutcome>& outcomes) {
  for (const auto& [attempt, outcome] : outcomes) {
    const auto known = outcomes_.find(attempt);
    if (known == outcomes_.end()) {
      ADD_FAILURE() << "an outcome of attempt " << attempt.value() << ", which nobody submitted";
      continue;
    }
    known->second.push_back(outcome);
    EXPECT_EQ(known->second.size(), 1U) << "attempt " << attempt.value() << " came out twice";
    if (known->second.size() == 1) --in_flight_;
  }
}

void Sender::await_all() {
  const auto deadline = Deadline::after(std::chrono::minutes(2));
  while (in_flight_ > 0 && !deadline.passed())
    record(publisher_->poll(deadline));
  EXPECT_EQ(in_flight_, 0U) << "messages without an outcome";
}

std::size_t Sender::poll(Deadline deadline) {
  const auto outcomes = publisher_->poll(deadline);
  record(outcomes);
  return outcomes.size();
}

void Sender::close() {
  record(publisher_->close(soon()));
}

const Outcome& Sender::outcome_of(AttemptId attempt) const {
  static const Outcome none = Outcome::unknown("no_outcome", "the test saw no outcome");
  const auto known = outcomes_.find(attempt);
  return known == outcomes_.end() || known->second.empty() ? none : known->second.front();
}

std::vector<Outcome> Sender::send(const std::vector<EventPtr>& events) {
  const auto window = publisher_->traits().window;
  std::vector<Outcome> outcomes;
  for (std::size_t at = 0; at < events.size(); at += window) {
    const auto end = std::min(events.size(), at + window);
    const auto attempts = submit({events.begin() + static_cast<std::ptrdiff_t>(at),
                                  events.begin() + static_cast<std::ptrdiff_t>(end)});
    await_all();
    for (const auto attempt : attempts)
      outcomes.push_back(outcome_of(attempt));
  }
  return outcomes;
}

std::vector<Outcome> Sender::try_send(const std::vector<EventPtr>& events) {
  const auto messages = messages_of(events);
  const auto submitted = publisher_->submit(messages, soon());
  if (!submitted.ok()) return {events.size(), postrider::outcome_of(submitted.error())};
  for (const auto& message : messages)
    outcomes_[message.attempt];
  in_flight_ += messages.size();
  await_all();
  std::vector<Outcome> outcomes;
  for (const auto& message : messages)
    outcomes.push_back(outcome_of(message.attempt));
  return outcomes;
}

std::vector<OutcomeKind> kinds_of(const std::vector<Outcome>& outcomes) {
  std::vector<OutcomeKind> kinds;
  for (const auto& outcome : outcomes)
    kinds.push_back(outcome.kind);
  return kinds;
}

void expect_all_confirmed(const std::vector<Outcome>& outcomes, std::size_t count) {
  EXPECT_EQ(outcomes.size(), count);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(to_string(outcomes[i].kind), "confirmed")
        << "message " << i << ": " << outcomes[i].code << ": " << outcomes[i].detail;
  }
}

std::vector<std::string> ids_of(const std::vector<EventPtr>& events) {
  std::vector<std::string> ids;
  for (const auto& event : events)
    ids.push_back(event->id.value().to_string());
  return ids;
}

std::vector<std::string> ids_of(const std::vector<Received>& received) {
  std::vector<std::string> ids;
  for (const auto& message : received)
    ids.push_back(message.event_id);
  return ids;
}

}  // namespace postrider::testing

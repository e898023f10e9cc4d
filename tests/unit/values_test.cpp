// Events, outcomes and the words of all enums. Routes and ids have files of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <postrider/delivery.hpp>
#include <postrider/event.hpp>
#include <postrider/notice.hpp>
#include <postrider/outcome.hpp>
#include <postrider/relay_values.hpp>

namespace postrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

NewEvent sound_event() {
  NewEvent event;
  event.aggregate = Aggregate{"order", "1"};
  event.type = "order.placed";
  event.payload = "{}";
  event.headers = {{"trace", "00-ab"}};
  return event;
}

struct Refused {
  const char* description;
  std::function<void(NewEvent&)> change;
  ErrorCode code;
  std::vector<std::string> said;  ///< parts of the message: the field, the position, the numbers
};

void expect_refused(const Refused& row) {
  SCOPED_TRACE(row.description);
  auto event = sound_event();
  row.change(event);
  const auto checked = check(event);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, row.code);
  EXPECT_EQ(checked.error().disposition, Disposition::reject);
  for (const auto& part : row.said)
    EXPECT_THAT(checked.error().message, HasSubstr(part));
  EXPECT_TRUE(checked.error().message.ends_with('.')) << checked.error().message;
}

TEST(EventCheck, A_sound_event_may_be_written) {
  EXPECT_TRUE(check(sound_event()).ok());

  auto lone = sound_event();
  lone.aggregate.reset();
  lone.headers.clear();
  lone.payload.clear();
  EXPECT_TRUE(check(lone).ok());
}

TEST(EventCheck, A_payload_may_be_any_bytes) {
  auto event = sound_event();
  event.payload = std::string("\0\xff\xfe\n", 4);

  EXPECT_TRUE(check(event).ok());
}

TEST(EventCheck, Names_may_be_in_any_script) {
  auto event = sound_event();
  event.type = "\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7";
  event.aggregate = Aggregate{"\xe6\xb3\xa8\xe6\x96\x87", "\xf0\x9f\x93\xae"};

  EXPECT_TRUE(check(event).ok());
}

TEST(EventCheck, A_fault_is_told_with_its_field_and_position) {
  const auto invalid = ErrorCode::invalid_argument;
  const std::vector<Refused> rows = {
      {"no type", [](auto& e) { e.type.clear(); }, invalid, {"type", "empty"}},
      {"no aggregate type",
       [](auto& e) { e.aggregate->type.clear(); },
       invalid,
       {"aggregate type", "empty"}},
      {"no aggregate id",
       [](auto& e) { e.aggregate->id.clear(); },
       invalid,
       {"aggregate id", "empty"}},
      {"no content type",
       [](auto& e) { e.content_type.clear(); },
       invalid,
       {"content type", "empty"}},
      {"a header without a name",
       [](auto& e) { e.headers[""] = "x"; },
       invalid,
       {"header", "empty"}},
      {"invalid UTF-8 in the type",
       [](auto& e) { e.type = "abc\xff"; },
       invalid,
       {"type", "UTF-8", "byte 3"}},
      {"a surrogate in the aggregate id",
       [](auto& e) { e.aggregate->id = "a\xed\xa0\x80"; },
       invalid,
       {"aggregate id", "UTF-8", "byte 1"}},
      {"an overlong form in the aggregate type",
       [](auto& e) { e.aggregate->type = "\xc0\xaf"; },
       invalid,
       {"aggregate type", "UTF-8", "byte 0"}},
      {"a line end in the type",
       [](auto& e) { e.type = "a\nb"; },
       invalid,
       {"type", "control", "byte 1"}},
      {"NUL in the aggregate id",
       [](auto& e) { e.aggregate->id = std::string("ab\0", 3); },
       invalid,
       {"aggregate id", "control", "byte 2"}},
      {"DEL in the content type",
       [](auto& e) { e.content_type = "a\x7f"; },
       invalid,
       {"content type", "control", "byte 1"}},
      {"a line end in a header's name",
       [](auto& e) { e.headers["a\r"] = "x"; },
       invalid,
       {"header", "control", "byte 1"}},
      {"a line end in a header's value",
       [](auto& e) { e.headers["trace"] = "x\r\ny"; },
       invalid,
       {"trace", "control", "byte 1"}},
      {"invalid UTF-8 in a header's value",
       [](auto& e) { e.headers["trace"] = "\xff"; },
       invalid,
       {"trace", "UTF-8", "byte 0"}},
      {"a version of nothing",
       [](auto& e) {
         e.aggregate.reset();
         e.aggregate_version = 1;
       },
       invalid,
       {"version", "aggregate"}},
  };
  for (const auto& row : rows)
    expect_refused(row);
}

TEST(EventCheck, A_size_over_its_limit_is_told_with_both_numbers) {
  const auto limit = ErrorCode::limit_exceeded;
  const std::vector<Refused> rows = {
      {"payload",
       [](auto& e) { e.payload.assign((1U << 20U) + 1, 'x'); },
       limit,
       {"payload", "1048577", "1048576"}},
      {"type", [](auto& e) { e.type.assign(256, 'x'); }, limit, {"type", "256", "255"}},
      {"aggregate type",
       [](auto& e) { e.aggregate->type.assign(256, 'x'); },
       limit,
       {"aggregate type", "256", "255"}},
      {"aggregate id",
       [](auto& e) { e.aggregate->id.assign(300, 'x'); },
       limit,
       {"aggregate id", "300", "255"}},
      {"content type",
       [](auto& e) { e.content_type.assign(256, 'x'); },
       limit,
       {"content type", "256", "255"}},
      {"header name",
       [](auto& e) { e.headers[std::string(256, 'x')] = ""; },
       limit,
       {"header", "256", "255"}},
      {"header",
       [](auto& e) { e.headers["trace"].assign(8192 - 4, 'x'); },
       limit,
       {"trace", "8193", "8192"}},
      {"number of headers",
       [](auto& e) {
         for (int i = 0; i < 64; ++i)
           e.headers["h" + std::to_string(i)] = "x";
       },
       limit,
       {"65", "64"}},
  };
  for (const auto& row : rows)
    expect_refused(row);
}

TEST(EventCheck, A_size_at_its_limit_may_be_written) {
  auto event = sound_event();
  event.payload.assign(1U << 20U, 'x');
  event.type.assign(255, 'x');
  event.aggregate = Aggregate{std::string(255, 'x'), std::string(255, 'y')};
  event.content_type.assign(255, 'x');
  event.headers.clear();
  event.headers[std::string(255, 'n')] = std::string(8192 - 255, 'x');
  for (int i = 1; i < 64; ++i)
    event.headers["h" + std::to_string(i)] = "x";

  EXPECT_TRUE(check(event).ok());
}

TEST(EventCheck, Limits_can_be_raised_and_lowered) {
  auto event = sound_event();
  event.payload.assign(2U << 20U, 'x');
  EventLimits limits;
  limits.payload_bytes = 2U << 20U;
  EXPECT_TRUE(check(event, limits).ok());

  limits.payload_bytes = 10;
  EXPECT_FALSE(check(event, limits).ok());
}

TEST(EventCheck, A_message_never_holds_the_payload) {
  auto event = sound_event();
  event.payload = "the-secret-payload";
  EventLimits limits;
  limits.payload_bytes = 5;

  const auto checked = check(event, limits);

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(describe(checked.error()).find("secret"), std::string::npos);
}

// Computed with Python: d = hashlib.md5((type + "/" + id).encode()).digest(); d[0] << 6 | d[1] >> 2
TEST(SlotOf, An_aggregate_has_the_same_slot_in_every_language) {
  const std::vector<std::pair<Aggregate, std::int32_t>> rows = {
      {{"order", "1"}, 10373},
      {{"order", "2"}, 5749},
      {{"Order", "1"}, 8922},
      {{"a", "b/c"}, 13309},
      {{"\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7", "\xd1\x91-1"}, 54},
      {{"x", std::string(100, 'y')}, 15288},
      {{"order", "\xf0\x9f\x93\xae"}, 10092},
      {{"order", "21656"}, 0},
      {{"order", "17711"}, 16383},
  };
  for (const auto& [aggregate, slot] : rows) {
    EXPECT_EQ(slot_of(aggregate), slot) << aggregate_key(aggregate);
  }
}

TEST(SlotOf, An_event_without_aggregate_takes_the_slot_of_its_id) {
  const std::vector<std::pair<const char*, std::int32_t>> rows = {
      {"0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b", 4351},
      {"00000000-0000-0000-0000-000000000000", 10210},
      {"ffffffff-ffff-ffff-ffff-ffffffffffff", 11597},
  };
  for (const auto& [text, slot] : rows) {
    EXPECT_EQ(slot_of(EventId(Uuid::parse(text).value())), slot) << text;
  }
}

TEST(AggregateKey, It_is_type_and_id_with_a_slash) {
  EXPECT_EQ(aggregate_key({"order", "1"}), "order/1");
}

template <class Enum, class Parse>
void expect_words(const std::vector<std::pair<Enum, std::string_view>>& words, const Parse& parse) {
  for (const auto& [value, word] : words) {
    EXPECT_EQ(to_string(value), word);
    EXPECT_EQ(parse(word), value) << word;
    EXPECT_EQ(parse(std::string(word) + " "), std::nullopt);
  }
  EXPECT_EQ(parse(""), std::nullopt);
  EXPECT_EQ(parse("no-such-word"), std::nullopt);
}

TEST(Words, Enums_that_are_read_are_read_as_they_are_written) {
  expect_words<Order>(
      {{Order::aggregate, "aggregate"}, {Order::global, "global"}, {Order::none, "none"}},
      parse_order);
  expect_words<OnFailed>(
      {{OnFailed::halt, "halt"}, {OnFailed::skip, "skip"}, {OnFailed::stop, "stop"}},
      parse_on_failed);
  expect_words<Record>({{Record::open, "open"}, {Record::all, "all"}}, parse_record);
  expect_words<Unrouted>({{Unrouted::hold, "hold"}, {Unrouted::discard, "discard"}},
                         parse_unrouted);
  expect_words<DeliveryStatus>({{DeliveryStatus::held, "held"},
                                {DeliveryStatus::pending, "pending"},
                                {DeliveryStatus::dispatched, "dispatched"},
                                {DeliveryStatus::completed, "completed"},
                                {DeliveryStatus::failed, "failed"},
                                {DeliveryStatus::discarded, "discarded"},
                                {DeliveryStatus::cancelled, "cancelled"}},
                               parse_delivery_status);
}

TEST(Words, All_statuses_are_listed_once_in_the_order_of_their_life) {
  EXPECT_THAT(all_delivery_statuses(),
              ::testing::ElementsAre(DeliveryStatus::held, DeliveryStatus::pending,
                                     DeliveryStatus::dispatched, DeliveryStatus::completed,
                                     DeliveryStatus::failed, DeliveryStatus::discarded,
                                     DeliveryStatus::cancelled));
}

TEST(Words, Enums_that_are_only_shown_have_the_words_of_their_enumerators) {
  EXPECT_EQ(to_string(OutcomeKind::confirmed), "confirmed");
  EXPECT_EQ(to_string(OutcomeKind::refused), "refused");
  EXPECT_EQ(to_string(OutcomeKind::rejected), "rejected");
  EXPECT_EQ(to_string(OutcomeKind::unknown), "unknown");
  EXPECT_EQ(to_string(OutcomeKind::unavailable), "unavailable");
  EXPECT_EQ(to_string(OutcomeKind::throttled), "throttled");
  EXPECT_EQ(to_string(OutcomeKind::gone), "gone");
  EXPECT_EQ(to_string(Disposition::retry), "retry");
  EXPECT_EQ(to_string(Disposition::in_doubt), "in_doubt");
  EXPECT_EQ(to_string(Disposition::reject), "reject");
  EXPECT_EQ(to_string(Disposition::stop), "stop");
}

struct NoticeCase {
  NoticeKind kind;
  std::string_view word;
  Severity severity;
};

TEST(Words, Every_notice_has_the_word_of_its_enumerator_and_its_severity) {
  using N = NoticeKind;
  const std::vector<NoticeCase> rows = {
      {N::delivery_completed, "delivery_completed", Severity::debug},
      {N::retry_scheduled, "retry_scheduled", Severity::warning},
      {N::delivery_failed, "delivery_failed", Severity::error},
      {N::event_held, "event_held", Severity::warning},
      {N::event_discarded, "event_discarded", Severity::info},
      {N::result_stale, "result_stale", Severity::warning},
      {N::route_paused, "route_paused", Severity::warning},
      {N::route_resumed, "route_resumed", Severity::info},
      {N::route_stopped, "route_stopped", Severity::error},
      {N::lease_gained, "lease_gained", Severity::info},
      {N::lease_lost, "lease_lost", Severity::warning},
      {N::store_failed, "store_failed", Severity::warning},
      {N::store_recovered, "store_recovered", Severity::info},
      {N::name_shared, "name_shared", Severity::warning},
      {N::rows_purged, "rows_purged", Severity::info},
      {N::purge_failed, "purge_failed", Severity::warning},
      {N::job_completed, "job_completed", Severity::debug},
      {N::job_snoozed, "job_snoozed", Severity::debug},
      {N::job_cancelled, "job_cancelled", Severity::info},
      {N::job_released, "job_released", Severity::info},
      {N::hooks_dropped, "hooks_dropped", Severity::warning},
      {N::worker_died, "worker_died", Severity::error},
      {N::result_conflict, "result_conflict", Severity::error},
      {N::heartbeat_failed, "heartbeat_failed", Severity::warning},
      {N::heartbeat_recovered, "heartbeat_recovered", Severity::info},
      {N::worker_isolated, "worker_isolated", Severity::error},
      {N::worker_declared_dead, "worker_declared_dead", Severity::error},
      {N::worker_quiet, "worker_quiet", Severity::info},
      {N::worker_stopping, "worker_stopping", Severity::info},
      {N::task_stale, "task_stale", Severity::warning},
      {N::task_repeated, "task_repeated", Severity::debug},
      {N::task_refused, "task_refused", Severity::warning},
      {N::source_failed, "source_failed", Severity::warning},
      {N::source_recovered, "source_recovered", Severity::info},
      {N::schedule_fired, "schedule_fired", Severity::info},
      {N::schedule_missed, "schedule_missed", Severity::warning},
      {N::schedule_failed, "schedule_failed", Severity::warning}};
  for (const auto& row : rows) {
    EXPECT_EQ(to_string(row.kind), row.word);
    EXPECT_EQ(severity_of(row.kind), row.severity) << row.word;
  }
  EXPECT_EQ(to_string(Severity::debug), "debug");
  EXPECT_EQ(to_string(Severity::info), "info");
  EXPECT_EQ(to_string(Severity::warning), "warning");
  EXPECT_EQ(to_string(Severity::error), "error");
}

TEST(Words, Every_error_code_has_the_word_of_its_enumerator) {
  using C = ErrorCode;
  const std::vector<std::pair<ErrorCode, std::string_view>> rows = {
      {C::invalid_argument, "invalid_argument"},
      {C::limit_exceeded, "limit_exceeded"},
      {C::config_invalid, "config_invalid"},
      {C::not_found, "not_found"},
      {C::already_exists, "already_exists"},
      {C::key_reused, "key_reused"},
      {C::no_transaction, "no_transaction"},
      {C::unavailable, "unavailable"},
      {C::timeout, "timeout"},
      {C::busy, "busy"},
      {C::conflict, "conflict"},
      {C::commit_unknown, "commit_unknown"},
      {C::auth_failed, "auth_failed"},
      {C::permission_denied, "permission_denied"},
      {C::primary_not_writable, "primary_not_writable"},
      {C::schema_mismatch, "schema_mismatch"},
      {C::storage_failed, "storage_failed"},
      {C::protocol, "protocol"},
      {C::unsupported, "unsupported"},
      {C::internal, "internal"}};
  for (const auto& [code, word] : rows)
    EXPECT_EQ(to_string(code), word);
}

TEST(Describe, An_error_is_one_line_with_code_message_and_origin) {
  const Error error{ErrorCode::busy, Disposition::retry, "the database is locked. Try again.",
                    "sqlite", "5"};

  EXPECT_THAT(describe(error),
              AllOf(HasSubstr("busy"), HasSubstr("Try again."), HasSubstr("sqlite"), HasSubstr("5"),
                    ::testing::Not(HasSubstr("\n"))));
}

TEST(OutcomeOf, The_disposition_of_a_call_decides_what_its_messages_came_to) {
  const std::vector<std::pair<Disposition, OutcomeKind>> rows = {
      {Disposition::retry, OutcomeKind::unavailable},
      {Disposition::in_doubt, OutcomeKind::unknown},
      {Disposition::reject, OutcomeKind::rejected},
      {Disposition::stop, OutcomeKind::unavailable}};
  for (const auto& [disposition, kind] : rows) {
    const auto outcome =
        outcome_of({ErrorCode::auth_failed, disposition, "Give the right password.", "amqp", ""});

    EXPECT_EQ(to_string(outcome.kind), to_string(kind)) << to_string(disposition);
    EXPECT_EQ(outcome.code, "auth_failed");
    EXPECT_EQ(outcome.detail, "Give the right password.");
    EXPECT_FALSE(outcome.connection_lost);
  }
}

TEST(OutcomeOf, Factories_set_what_their_name_says) {
  EXPECT_EQ(Outcome::confirmed().kind, OutcomeKind::confirmed);
  EXPECT_EQ(Outcome::refused("full", "d").kind, OutcomeKind::refused);
  EXPECT_EQ(Outcome::rejected("large", "d").kind, OutcomeKind::rejected);
  EXPECT_EQ(Outcome::unknown("timed_out", "d").kind, OutcomeKind::unknown);
  EXPECT_FALSE(Outcome::unknown("timed_out", "d").connection_lost);
  EXPECT_EQ(Outcome::lost_connection("d").kind, OutcomeKind::unknown);
  EXPECT_TRUE(Outcome::lost_connection("d").connection_lost);
  EXPECT_EQ(Outcome::unavailable("down", "d").kind, OutcomeKind::unavailable);
  EXPECT_EQ(Outcome::throttled(milliseconds(7), "d").kind, OutcomeKind::throttled);
  EXPECT_EQ(Outcome::throttled(milliseconds(7), "d").after, milliseconds(7));
  EXPECT_EQ(Outcome::gone("d").kind, OutcomeKind::gone);
  EXPECT_EQ(Outcome::refused("full", "the queue").code, "full");
  EXPECT_EQ(Outcome::refused("full", "the queue").detail, "the queue");
}

TEST(OutcomeOf, A_long_detail_is_cut_between_characters) {
  std::string detail(Outcome::detail_bytes - 1, 'x');
  detail += "\xf0\x9f\x93\xae";

  EXPECT_EQ(Outcome::refused("full", detail).detail, std::string(Outcome::detail_bytes - 1, 'x'));
}

}  // namespace
}  // namespace postrider

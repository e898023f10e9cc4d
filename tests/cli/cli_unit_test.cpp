// The parts of the command line that need no process: records, tables, summaries, exit codes.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/event_record.hpp"
#include "cli/exit_code.hpp"
#include "cli/job_view.hpp"
#include "cli/relay_summary.hpp"
#include "cli/status_view.hpp"
#include "cli/table.hpp"
#include "config/time_text.hpp"
#include "golden/golden.hpp"

namespace postrider::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::expect_golden;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(EventRecord, reads_every_member) {
  const auto event = parse_event_record(
      R"({"id":"01890a5d-ac96-774b-bcce-b302099a8057","seq":"7","aggregate_type":"order",)"
      R"("aggregate_id":"1","type":"order.placed","content_type":"text/plain",)"
      R"("headers":{"a":"1","b":""},"created_at":"2026-01-01T00:00:00.000000Z",)"
      R"("payload":"жук\n"})");
  ASSERT_TRUE(event.ok()) << event.error().message;
  EXPECT_EQ(event->id->value().to_string(), "01890a5d-ac96-774b-bcce-b302099a8057");
  EXPECT_EQ(event->aggregate, (Aggregate{"order", "1"}));
  EXPECT_EQ(event->type, "order.placed");
  EXPECT_EQ(event->content_type, "text/plain");
  EXPECT_EQ(event->headers, (Headers{{"a", "1"}, {"b", ""}}));
  EXPECT_EQ(event->payload, "жук\n");
}

TEST(EventRecord, reads_a_version_as_number_or_text_and_a_time) {
  for (const auto* version : {"7", "\"7\""}) {
    const auto event = parse_event_record(
        std::string(R"({"type":"t","payload":"","aggregate_type":"o","aggregate_id":"1",)") +
        R"("available_at":"2026-12-01T08:00:00+01:00","aggregate_version":)" + version + "}");
    ASSERT_TRUE(event.ok()) << event.error().message;
    EXPECT_EQ(event->aggregate_version, 7);
    EXPECT_EQ(event->available_at, config::parse_time("2026-12-01T07:00:00Z"));
  }
}

TEST(TimeText, reads_rfc_3339_and_nothing_else) {
  using std::chrono::microseconds;
  const auto utc = config::parse_time("2026-12-01T08:00:00Z");
  ASSERT_TRUE(utc);
  EXPECT_EQ(config::parse_time("2026-12-01T08:00:00.5Z"), *utc + microseconds(500'000));
  EXPECT_EQ(config::parse_time("2026-12-01T08:00:00.000001Z"), *utc + microseconds(1));
  EXPECT_EQ(config::parse_time("2026-12-01T10:30:00+02:30"), *utc);
  EXPECT_EQ(config::parse_time("2026-12-01T00:00:00-08:00"), *utc);
  for (const auto* text :
       {"", "2026-12-01", "2026-12-01T08:00:00", "2026-12-01 08:00:00Z", "2026-12-01T08:00Z",
        "2026-12-01T08:00:00z", "2026-13-01T08:00:00Z", "2026-02-29T08:00:00Z",
        "2026-12-01T24:00:00Z", "2026-12-01T08:00:60Z", "2026-12-01T08:00:00.Z",
        "2026-12-01T08:00:00.1234567Z", "2026-12-01T08:00:00+2", "2026-12-01T08:00:00+0200",
        "2026-12-01T08:00:00+aa:00", "2026-12-01T08:00:00Zx", "tomorrow"}) {
    EXPECT_FALSE(config::parse_time(text)) << text;
  }
}

TEST(EventRecord, needs_type_and_payload_only) {
  const auto event = parse_event_record(
      R"({"type":"t","payload_base64":"/w==","aggregate_type":null,"aggregate_id":null})");
  ASSERT_TRUE(event.ok()) << event.error().message;
  EXPECT_FALSE(event->id.has_value());
  EXPECT_FALSE(event->aggregate.has_value());
  EXPECT_EQ(event->content_type, "application/json");
  EXPECT_EQ(event->payload, "\xff");
}

TEST(EventRecord, refuses_everything_else_and_shows_no_value) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", "no JSON"},
      {R"({"type":"t","payload":"","aggregate_version":1.5})", "aggregate_version is a number"},
      {R"({"type":"t","payload":"","aggregate_version":"canary"})", "no whole number of 64 bits"},
      {R"({"type":"t","payload":"","aggregate_version":"9223372036854775808"})", "of 64 bits"},
      {R"({"type":"t","payload":"","aggregate_version":9223372036854775808})", "of 64 bits"},
      {R"({"type":"t","payload":"","available_at":"canary"})", "available_at is no time"},
      {R"({"type":"t","payload":"","available_at":5})", "available_at is a number"},
      {"canary", "no JSON"},
      {R"({"type":"t","payload":"canary")", "no JSON"},
      {R"({"type":"t","payload":"canary"} x)", "no JSON"},
      {"{\"type\":\"t\",\"payload\":\"\xff\"}", "no JSON"},
      {R"({"type":"t","payload":"\ud800"})", "no JSON"},
      {R"(["canary"])", "the record is a list. Give an object."},
      {R"("canary")", "the record is a text. Give an object."},
      {"5", "the record is a number"},
      {R"({"payload":""})", "type is missing"},
      {R"({"type":"t"})", "either payload or payload_base64"},
      {R"({"type":"t","payload":"","payload_base64":""})", "either payload or payload_base64"},
      {R"({"type":1,"payload":""})", "type is a number. Give a text."},
      {R"({"type":null,"payload":""})", "type is null"},
      {R"({"type":"t","payload":{"canary":1}})", "payload is an object. Give a text."},
      {R"({"type":"t","payload":["canary"]})", "payload is a list. Give a text."},
      {R"({"type":"t","payload":true})", "payload is true or false"},
      {R"({"type":"t","payload":"","seq":7})", "seq is a number"},
      {R"({"type":"t","payload":"","canary":"x"})", "a member is unknown"},
      {R"({"type":"t","type":"u","payload":""})", "type is given twice"},
      {R"({"type":"t","payload":"","headers":"canary"})", "headers is a text. Give an object."},
      {R"({"type":"t","payload":"","headers":null})", "headers is null"},
      {R"({"type":"t","payload":"","headers":{"canary":1}})", "a header is a number. Give a text."},
      {R"({"type":"t","payload":"","headers":{"canary":{}}})", "a header is an object"},
      {R"({"type":"t","payload":"","headers":{"canary":null}})", "a header is null"},
      {R"({"type":"t","payload":"","headers":{"a":"1","a":"2"}})", "a header is given twice"},
      {R"({"type":"t","payload":"","headers":{},"headers":{}})", "headers is given twice"},
      {R"({"type":"t","payload":"","id":"canary"})", "id is no UUID"},
      {R"({"type":"t","payload":"","aggregate_type":"a"})", "only one of aggregate_type"},
      {R"({"type":"t","payload":"","aggregate_type":"a","aggregate_id":null})", "only one of"},
      {R"({"type":"t","payload_base64":"canary!!"})", "no base64"},
      {R"({"type":"t","payload":)" + std::string(500'000, '['), "payload is a list"},
      {std::string(500'000, '['), "the record is a list"},
  };
  for (const auto& [line, reason] : rows) {
    const auto event = parse_event_record(line);
    ASSERT_FALSE(event.ok()) << line.substr(0, 100);
    EXPECT_THAT(event.error().message, HasSubstr(reason)) << line.substr(0, 100);
    EXPECT_THAT(event.error().message, Not(HasSubstr("canary")));
  }
}

TEST(Base64, takes_the_canonical_form_only) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("YQ=="), "a");
  EXPECT_EQ(decode_base64("YWI="), "ab");
  EXPECT_EQ(decode_base64("YWJj"), "abc");
  EXPECT_EQ(decode_base64("+/+/"), "\xfb\xff\xbf");
  for (const auto* text : {"Y", "YQ", "YQ=", "YR==", "YQ==YQ==", "Y===", "====", "Y Q=", "YQ-_"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

TEST(AgeText, names_the_two_largest_units) {
  const std::vector<std::pair<milliseconds, std::string>> rows = {
      {milliseconds(0), "0ms"},         {milliseconds(850), "850ms"}, {seconds(12), "12s"},
      {milliseconds(59'999), "59s"},    {seconds(200), "3m 20s"},     {minutes(60), "1h"},
      {hours(5) + minutes(2), "5h 2m"}, {hours(76), "3d 4h"},         {milliseconds(-5), "0ms"}};
  for (const auto& [age, text] : rows)
    EXPECT_EQ(age_text(age), text);
  EXPECT_EQ(age_text(std::nullopt), "-");
}

TEST(Harmless, shows_no_byte_that_a_terminal_obeys) {
  EXPECT_EQ(harmless("order.placed"), "order.placed");
  EXPECT_EQ(harmless("заказ"), "заказ");
  EXPECT_EQ(harmless("\x1b[31m"), "\\u001b[31m");
  EXPECT_EQ(harmless("a\nb"), "a\\nb");
  EXPECT_EQ(harmless("\xc2\x9b"), "\\u009b");
  EXPECT_EQ(harmless("\x7f"), "\\u007f");
  EXPECT_EQ(harmless("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(harmless("\xff"), "\xef\xbf\xbd");
}

TEST(TableText, aligns_by_characters_and_not_by_bytes) {
  const Console console;
  Table table({{"name"}, {"count", true}});
  table.add({{"жук"}, {"5"}});
  table.add({{"beetle"}, {"12"}});
  EXPECT_EQ(table.text(console),
            "name    count\n"
            "жук         5\n"
            "beetle     12\n");
}

TEST(Counted, knows_the_plural) {
  EXPECT_EQ(counted(0, "event"), "0 events");
  EXPECT_EQ(counted(1, "event"), "1 event");
  EXPECT_EQ(counted(2, "delivery"), "2 deliveries");
}

Status busy_status() {
  Status status;
  status.events = {1200, 17, minutes(3)};
  DeliveryCounts orders;
  orders.route = "orders";
  orders.due = 3;
  orders.delayed = 2;
  orders.failed = 1;
  orders.retries = 9;
  orders.oldest_due_age = seconds(75);
  DeliveryCounts held;
  held.held = 4;
  status.routes = {held, orders};
  status.partitions = {{Partition(0), "north", seconds(4)},
                       {Partition(1), "north", seconds(3)},
                       {Partition(2), "south", seconds(5)},
                       {Partition(3), "", std::nullopt}};
  status.partitions[2].suspicion = {2, Seq(41)};
  status.paused_routes = {"orders"};
  return status;
}

JobStatus busy_jobs() {
  JobCounts mail;
  mail.queue = "mail";
  mail.job = "send_mail";
  mail.delayed = 4;
  mail.completed = 90;
  JobCounts shipping;
  shipping.queue = "shipping";
  shipping.job = "ship_order";
  shipping.due = 12;
  shipping.dispatched = 5;
  shipping.overdue = 1;
  shipping.failed = 2;
  shipping.retries = 7;
  shipping.deaths = 1;
  shipping.interruptions = 3;
  shipping.oldest_due_age = seconds(90);
  shipping.oldest_dispatched_age = minutes(11);
  QueueState paused;
  paused.queue = "mail";
  paused.paused_at = Timestamp(seconds(1'767'225'600));
  paused.paused_by = "ann";
  paused.reason = "provider is down";
  QueueState limited;
  limited.queue = "shipping";
  limited.rate_limit = RateLimit{100, minutes(1)};
  return {{mail, shipping}, {paused, limited}};
}

TEST(StatusView, R_223_G_02_a_busy_database_as_table_and_json) {
  const Console console;
  const std::vector<std::string> routes = {"audit", "orders"};
  expect_golden("status_busy.txt", status_text(busy_status(), busy_jobs(), routes, {}, console));
  expect_golden("status_busy.json", status_json(busy_status(), busy_jobs(), routes, {}));
  expect_golden("queues_busy.txt", queues_text(busy_jobs(), console));
}

PassReport troubled_report() {
  PassReport report;
  report.claimed = 5;
  report.due = 2;
  report.confirmed = {{"all", 2}, {"audit", 1}};
  PassError refused;
  refused.route = "all";
  refused.seq = Seq(3);
  refused.event_id = EventId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value());
  refused.outcome = OutcomeKind::refused;
  refused.code = "queue_full";
  refused.detail = "The queue is full.";
  auto again = refused;
  again.seq = Seq(4);
  PassError down;
  down.route = "audit";
  down.outcome = OutcomeKind::unavailable;
  down.code = "storage_failed";
  down.detail = "no space is left.";
  report.errors = {refused, again, down};
  report.errors_left_out = 3;
  report.retried = 2;
  report.failed = 1;
  report.jobs = 4;
  report.parked = 1;
  report.held = 1;
  report.waiting = 2;
  report.discarded = 1;
  report.more = true;
  report.foreign = {{Partition(3), "south", seconds(5)}, {Partition(4), "south", seconds(5)}};
  return report;
}

TEST(RelaySummary, says_what_was_delivered_what_went_wrong_and_what_waits) {
  const ShownRoutes routes = {{"all", "amqp://u:***@mq/"}, {"audit", "file:a.jsonl"}};
  const PausedRoutes paused = {{"all", "blocked"}, {"audit", "storage_failed"}};
  expect_golden("relay_summary.txt", summary_text(troubled_report(), routes, paused));
  expect_golden("relay_summary.json", summary_json(troubled_report(), routes, paused));
}

TEST(RelaySummary, a_delivery_that_was_refused_is_no_outage) {
  PassReport report;
  EXPECT_FALSE(destination_unavailable(report));
  report.errors.resize(1);
  report.errors[0].outcome = OutcomeKind::refused;
  EXPECT_FALSE(destination_unavailable(report));
  report.errors[0].outcome = OutcomeKind::throttled;
  EXPECT_TRUE(destination_unavailable(report));
  report.errors[0].outcome = OutcomeKind::unavailable;
  EXPECT_TRUE(destination_unavailable(report));
  report.errors.clear();
  report.waiting = 1;
  EXPECT_TRUE(destination_unavailable(report));
}

TEST(ExitCodes, follow_sysexits) {
  const std::vector<std::pair<ErrorCode, int>> rows = {{ErrorCode::invalid_argument, 65},
                                                       {ErrorCode::limit_exceeded, 65},
                                                       {ErrorCode::config_invalid, 78},
                                                       {ErrorCode::not_found, 69},
                                                       {ErrorCode::already_exists, 65},
                                                       {ErrorCode::key_reused, 65},
                                                       {ErrorCode::no_transaction, 70},
                                                       {ErrorCode::unavailable, 69},
                                                       {ErrorCode::timeout, 75},
                                                       {ErrorCode::busy, 75},
                                                       {ErrorCode::conflict, 75},
                                                       {ErrorCode::commit_unknown, 75},
                                                       {ErrorCode::auth_failed, 77},
                                                       {ErrorCode::permission_denied, 77},
                                                       {ErrorCode::primary_not_writable, 69},
                                                       {ErrorCode::schema_mismatch, 78},
                                                       {ErrorCode::storage_failed, 74},
                                                       {ErrorCode::protocol, 70},
                                                       {ErrorCode::unsupported, 78},
                                                       {ErrorCode::internal, 70}};
  for (const auto& [code, exit_code] : rows) {
    EXPECT_EQ(static_cast<int>(exit_code_of(code)), exit_code) << to_string(code);
  }
}

}  // namespace
}  // namespace postrider::cli

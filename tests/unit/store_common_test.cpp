// What every SQL store shares: names in SQL, headers and delays as JSON, rows as events.

#include <gmock/gmock.h>

#include <functional>

#include "base/timestamp_text.hpp"
#include "store/common/durations_codec.hpp"
#include "store/common/event_row.hpp"
#include "store/common/headers_codec.hpp"
#include "store/common/hooks_codec.hpp"
#include "store/common/sql_names.hpp"
#include "store/common/strings_codec.hpp"
#include "store/common/token_bucket.hpp"

namespace postrider::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SqlNames, Placeholders_are_filled_in) {
  const auto* sql = "SELECT 1 FROM {schema}{prefix}outbox_events, {schema}{prefix}outbox_routes";
  EXPECT_EQ(substitute_names(sql, {}), "SELECT 1 FROM outbox_events, outbox_routes");
  EXPECT_EQ(substitute_names(sql, {"shop", "app_"}),
            "SELECT 1 FROM \"shop\".app_outbox_events, \"shop\".app_outbox_routes");
  EXPECT_EQ(substitute_names("no placeholder {other}", {"a", "b"}), "no placeholder {other}");
}

TEST(SqlNames, Sound_names_are_taken) {
  for (const auto& names : {SchemaNames{}, SchemaNames{"", "app_"}, SchemaNames{"shop", "_1"},
                            SchemaNames{std::string(63, 'a'), std::string(20, 'b')}}) {
    EXPECT_TRUE(validate(names, SchemaSupport::optional).ok());
  }
}

TEST(SqlNames, Anything_else_is_refused_and_not_repeated) {
  const auto refused = [](const SchemaNames& names, SchemaSupport support) {
    const auto checked = validate(names, support);
    EXPECT_FALSE(checked.ok());
    if (checked.ok()) return std::string();
    EXPECT_EQ(checked.error().code, ErrorCode::config_invalid);
    return checked.error().message;
  };
  for (const auto* prefix : {"App", "1x", "a-b", "a b", "a;drop", "a\"", "ä", "{schema}", "sqlite_",
                             "pg_x", "abcdefghijklmnopqrstu"}) {
    EXPECT_THAT(refused({"", prefix}, SchemaSupport::optional), Not(IsEmpty())) << prefix;
  }
  EXPECT_THAT(refused({"", "secret;"}, SchemaSupport::optional), Not(HasSubstr("secret")));
  EXPECT_THAT(refused({"a\"b", ""}, SchemaSupport::optional), HasSubstr("the schema"));
  EXPECT_THAT(refused({std::string(64, 'a'), ""}, SchemaSupport::optional), HasSubstr("64"));
  EXPECT_THAT(refused({"shop", ""}, SchemaSupport::none), HasSubstr("no schemas"));
}

TEST(HeadersCodec, What_was_encoded_is_decoded) {
  for (const auto& headers :
       {Headers{}, Headers{{"a", ""}}, Headers{{"a", "1"}, {"b", "\"\\\n\t\x01"}},
        Headers{{"grüße", "\xf0\x9f\x93\xa8"}}, Headers{{"null", std::string("a\0b", 3)}}}) {
    const auto text = encode_headers(headers);
    ASSERT_TRUE(text.ok());
    const auto back = decode_headers(*text);
    ASSERT_TRUE(back.ok()) << describe(back.error());
    EXPECT_EQ(*back, headers);
  }
  EXPECT_EQ(*encode_headers({{"b", "2"}, {"a", "1"}}), R"({"a":"1","b":"2"})");
}

TEST(HeadersCodec, Scalars_written_by_hand_keep_every_digit) {
  const auto headers = decode_headers(
      R"( {"a": 9007199254740993, "b": -18446744073709551616, "c": 1.50, "d": true, "e": false} )");
  ASSERT_TRUE(headers.ok()) << describe(headers.error());
  EXPECT_EQ(*headers, (Headers{{"a", "9007199254740993"},
                               {"b", "-18446744073709551616"},
                               {"c", "1.50"},
                               {"d", "true"},
                               {"e", "false"}}));
}

TEST(HeadersCodec, Everything_else_is_refused_without_repeating_it) {
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  for (const auto& text :
       {std::string(), std::string("null"), std::string("7"), std::string("\"a\""),
        std::string("[]"), std::string("{"), std::string("{\"a\":{}}"), std::string("{\"a\":[]}"),
        std::string("{\"a\":null}"), std::string("{\"a\":\"1\",\"a\":\"2\"}"), std::string("{} {}"),
        std::string("{\"a\":\"\xc3\"}"), std::string("{secret"), deep,
        "{\"a\":\"" + std::string(most_header_text_bytes, 'x') + "\"}"}) {
    const auto headers = decode_headers(text);
    ASSERT_FALSE(headers.ok()) << text.substr(0, 40);
    EXPECT_EQ(headers.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(headers.error().message, Not(HasSubstr("secret")));
    EXPECT_THAT(headers.error().message, ::testing::EndsWith("."));
  }
}

TEST(HeadersCodec, Bytes_that_are_not_text_cannot_be_encoded) {
  EXPECT_EQ(encode_headers({{"a", "\xff"}}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(encode_headers({{"\xff", "a"}}).error().code, ErrorCode::invalid_argument);
}

TEST(DurationsCodec, Lists_go_there_and_back) {
  const std::vector<milliseconds> some = {milliseconds(1000), milliseconds(0), milliseconds(5)};
  EXPECT_EQ(encode_durations({}), "[]");
  EXPECT_EQ(encode_durations(some), "[1000,0,5]");
  EXPECT_EQ(*decode_durations(encode_durations(some)), some);
  EXPECT_THAT(*decode_durations(" [ 1 ,\n2 ] "), ElementsAre(milliseconds(1), milliseconds(2)));
  EXPECT_THAT(*decode_durations("[]"), IsEmpty());
}

TEST(DurationsCodec, Anything_else_is_refused) {
  std::string long_list = "[1";
  for (int i = 0; i < 64; ++i)
    long_list += ",1";
  long_list += "]";
  for (const auto& text :
       {std::string(), std::string("["), std::string("[1"), std::string("[1,]"), std::string("[,]"),
        std::string("[-1]"), std::string("[1.5]"), std::string("[1e3]"), std::string("[\"1\"]"),
        std::string("[1] x"), std::string("{}"), std::string("[[1]]"),
        std::string("[99999999999999999999]"), long_list}) {
    const auto read = decode_durations(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
  }
}

TEST(StringsCodec, Lists_go_there_and_back) {
  const std::vector<std::vector<std::string>> lists = {
      {}, {"mail"}, {"mail", "shipping"}, {"", "a\"b\\", "\xd1\x8f\n"}};
  for (const auto& list : lists) {
    const auto decoded = decode_strings(encode_strings(list));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, list);
  }
}

TEST(StringsCodec, Anything_else_is_refused) {
  for (const auto* text : {"", "{}", "[1]", "[\"a\"", "[\"a\",null]", "\"a\"", "[[]]"})
    EXPECT_FALSE(decode_strings(text).ok()) << text;
}

TEST(HooksCodec, Hooks_go_there_and_back) {
  const std::vector<JobHooks> rows = {{"a.completed", "a.retry", "a.failed", "a.death"},
                                      {"", "", "a \"quoted\" \xd1\x8f", ""}};
  for (const auto& hooks : rows) {
    const auto decoded = decode_hooks(encode_hooks(hooks).value());
    ASSERT_TRUE(decoded.ok()) << describe(decoded.error());
    EXPECT_EQ(*decoded, hooks);
  }
  EXPECT_EQ(encode_hooks(JobHooks{"", "", "a.failed", ""}), R"({"failed_event":"a.failed"})");
  EXPECT_EQ(encode_hooks({}), std::nullopt);
}

TEST(HooksCodec, Anything_else_is_refused) {
  for (const auto* text : {"", "[]", "{\"failed\":\"a\"}", "{\"failed_event\":[]}",
                           "{\"failed_event\":\"\"}", "{\"failed_event\":\"a\\nb\"}"}) {
    EXPECT_FALSE(decode_hooks(text).ok()) << text;
  }
}

Timestamp at_ms(std::int64_t ms) {
  return Timestamp(milliseconds(ms));
}

int taken_from(TokenBucket& bucket) {
  int taken = 0;
  while (taken < 1000 && bucket.take())
    ++taken;
  return taken;
}

TEST(TokenBucket, A_new_one_is_full_and_holds_one_limit) {
  TokenBucket fresh(5, milliseconds(1000), 0, std::nullopt, at_ms(0));
  EXPECT_EQ(taken_from(fresh), 5);
  TokenBucket rested(5, milliseconds(1000), 5, at_ms(0), at_ms(1'000'000));
  EXPECT_EQ(taken_from(rested), 5);
}

TEST(TokenBucket, It_says_when_the_next_token_is_there_and_keeps_its_word) {
  for (const int limit : {1, 3, 7, 1000, 1'000'000}) {
    TokenBucket bucket(limit, milliseconds(60'000), 0, at_ms(0), at_ms(0));
    EXPECT_FALSE(bucket.take());
    const auto wait = bucket.next_in();
    EXPECT_GE(wait, milliseconds(1));
    TokenBucket later(limit, milliseconds(60'000), bucket.tokens(), at_ms(0), at_ms(wait.count()));
    EXPECT_TRUE(later.take()) << limit;
    if (wait == milliseconds(1)) continue;
    TokenBucket early(limit, milliseconds(60'000), bucket.tokens(), at_ms(0),
                      at_ms(wait.count() - 1));
    EXPECT_FALSE(early.take()) << limit;
  }
}

TEST(TokenBucket, Many_small_steps_give_what_one_step_gives) {
  double tokens = 0;
  int taken = 0;
  for (int ms = 1; ms <= 60'000; ++ms) {
    TokenBucket bucket(7, milliseconds(1000), tokens, at_ms(ms - 1), at_ms(ms));
    taken += bucket.take() ? 1 : 0;
    tokens = bucket.tokens();
  }
  EXPECT_EQ(taken, 7 * 60);
}

TEST(TokenBucket, A_clock_that_went_back_fills_nothing) {
  TokenBucket bucket(5, milliseconds(1000), 2, at_ms(10'000), at_ms(0));
  EXPECT_EQ(taken_from(bucket), 2);
}

TEST(TimestampParse, Texts_of_the_library_are_read_back_exactly) {
  for (const std::int64_t us :
       {std::int64_t{0}, std::int64_t{1'767'225'600'123'456}, std::int64_t{-1},
        std::int64_t{951'782'400'000'000}, std::int64_t{253'402'300'799'999'999}}) {
    const Timestamp time{std::chrono::microseconds(us)};
    EXPECT_EQ(parse_timestamp(timestamp_text(time)), time);
  }
}

TEST(TimestampParse, Other_forms_and_impossible_times_are_nothing) {
  for (const auto* text :
       {"", "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z",
        "2026-01-01 00:00:00.000000Z", "2026-01-01T00:00:00.000000+", "2026-02-30T00:00:00.000000Z",
        "2026-13-01T00:00:00.000000Z", "2026-01-01T24:00:00.000000Z", "2026-01-01T00:60:00.000000Z",
        "2026-01-01T00:00:60.000000Z", "2026-01-0xT00:00:00.000000Z"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
}

EventRow sound_row() {
  EventRow row;
  row.seq = 7;
  row.id = "00000000-0000-7000-8000-000000000001";
  row.aggregate_type = "order";
  row.aggregate_id = "1";
  row.aggregate_version = 3;
  row.type = "order.placed";
  row.payload = std::string("\0\xff", 2);
  row.content_type = "application/octet-stream";
  row.headers = R"({"tenant":"a"})";
  row.created_at = Timestamp(std::chrono::microseconds(5));
  row.available_at = Timestamp(std::chrono::microseconds(6));
  return row;
}

TEST(EventRow, A_sound_row_becomes_the_whole_event) {
  const auto read = read_event(sound_row());

  EXPECT_EQ(read.malformed, "");
  EXPECT_EQ(read.event->seq, Seq(7));
  EXPECT_EQ(read.event->id.value().to_string(), "00000000-0000-7000-8000-000000000001");
  EXPECT_EQ(read.event->aggregate, (Aggregate{"order", "1"}));
  EXPECT_EQ(read.event->aggregate_version, 3);
  EXPECT_EQ(read.event->type, "order.placed");
  EXPECT_EQ(read.event->payload, std::string("\0\xff", 2));
  EXPECT_EQ(read.event->content_type, "application/octet-stream");
  EXPECT_EQ(read.event->headers, (Headers{{"tenant", "a"}}));
  EXPECT_EQ(read.event->created_at, Timestamp(std::chrono::microseconds(5)));
  EXPECT_EQ(read.event->available_at, Timestamp(std::chrono::microseconds(6)));
}

TEST(EventRow, A_row_without_options_is_sound) {
  auto row = sound_row();
  row.aggregate_type.reset();
  row.aggregate_id.reset();
  row.aggregate_version.reset();
  row.headers.reset();
  row.available_at.reset();

  const auto read = read_event(std::move(row));

  EXPECT_EQ(read.malformed, "");
  EXPECT_EQ(read.event->aggregate, std::nullopt);
  EXPECT_THAT(read.event->headers, IsEmpty());
  EXPECT_EQ(read.event->available_at, std::nullopt);
}

TEST(EventRow, What_cannot_be_read_is_handed_on_with_its_first_fault) {
  struct Case {
    std::function<void(EventRow&)> damage;
    std::string reason;
  };
  const Case cases[] = {{[](EventRow& row) { row.id = "x"; }, "not a UUID"},
                        {[](EventRow& row) { row.headers = "[]"; }, "not a JSON object"},
                        {[](EventRow& row) { row.aggregate_id.reset(); }, "not both"},
                        {[](EventRow& row) { row.created_at.reset(); }, "creation time"},
                        {[](EventRow& row) {
                           row.id = "x";
                           row.headers = "[]";
                         },
                         "not a UUID"}};
  for (const auto& each : cases) {
    auto row = sound_row();
    each.damage(row);
    const auto read = read_event(std::move(row));
    EXPECT_THAT(read.malformed, HasSubstr(each.reason));
    ASSERT_NE(read.event, nullptr);
    EXPECT_EQ(read.event->seq, Seq(7));
    EXPECT_EQ(read.event->type, "order.placed");
  }
}

}  // namespace
}  // namespace postrider::store

// The parts of the PostgreSQL store that need no server: its table of errors, its marks, its wire
// format.

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/postgres/postgres_errors.hpp"
#include "store/postgres/postgres_read_mark.hpp"
#include "store/postgres/postgres_rows.hpp"

namespace postrider::store::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct ErrorCase {
  const char* state;
  ErrorCode code;
  Disposition disposition;
};

using enum ErrorCode;
using enum Disposition;

// One line per line of the table, with a state that this line has to catch.
const std::vector<ErrorCase> error_cases = {
    {"08P01", protocol, retry},
    {"08006", unavailable, retry},
    {"0A000", conflict, retry},
    {"22P02", invalid_argument, reject},
    {"23505", already_exists, reject},
    {"23514", invalid_argument, reject},
    {"25006", primary_not_writable, retry},
    {"25P02", internal, retry},
    {"26000", conflict, retry},
    {"28P01", auth_failed, stop},
    {"3D000", not_found, stop},
    {"3F000", schema_mismatch, stop},
    {"40003", commit_unknown, in_doubt},
    {"40P01", conflict, retry},
    {"42501", permission_denied, stop},
    {"42P01", schema_mismatch, stop},
    {"42703", schema_mismatch, stop},
    {"42704", schema_mismatch, stop},
    {"42883", schema_mismatch, stop},
    {"42P05", config_invalid, stop},
    {"42P06", already_exists, reject},
    {"42P07", already_exists, stop},
    {"42710", already_exists, stop},
    {"42723", already_exists, stop},
    {"42601", internal, stop},
    {"53100", storage_failed, retry},
    {"53300", unavailable, retry},
    {"54000", limit_exceeded, reject},
    {"55P03", busy, retry},
    {"55006", busy, retry},
    {"55000", unavailable, retry},
    {"57014", timeout, retry},
    {"57P04", not_found, stop},
    {"57P01", unavailable, retry},
    {"58030", storage_failed, retry},
    {"PR001", conflict, retry},
    {"PR002", invalid_argument, reject},
    {"XX001", storage_failed, stop},
    {"XX002", storage_failed, stop},
};

TEST(PostgresErrors, Every_line_of_the_table_is_met_by_a_case) {
  ASSERT_EQ(error_rows().size(), error_cases.size());
  for (std::size_t i = 0; i < error_cases.size(); ++i) {
    EXPECT_EQ(&error_row(error_cases[i].state), &error_rows()[i]) << error_cases[i].state;
  }
}

TEST(PostgresErrors, A_state_has_its_code_and_disposition_and_an_advice) {
  for (const auto& row : error_cases) {
    const auto error = server_error(row.state, "said", "", "events_claim", Stage::before_commit);
    EXPECT_EQ(error.code, row.code) << row.state;
    EXPECT_EQ(error.disposition, row.disposition) << row.state;
    EXPECT_EQ(error.native_code, row.state);
    EXPECT_EQ(error.origin, "postgres");
    EXPECT_TRUE(error.message.ends_with('.')) << error.message;
    EXPECT_THAT(error.message, HasSubstr("events_claim"));
  }
}

TEST(PostgresErrors, A_state_that_nobody_knows_is_tried_again) {
  const auto error = server_error("ZZ999", "secret", "", "events_claim", Stage::before_commit);

  EXPECT_EQ(error.code, internal);
  EXPECT_EQ(error.disposition, retry);
  EXPECT_THAT(error.message, Not(HasSubstr("secret")));
}

TEST(PostgresErrors, The_servers_sentence_is_left_out_where_it_may_hold_a_value) {
  for (const auto* state : {"22P02", "23505", "54000"}) {
    const auto error = server_error(state, "invalid input: \"secret\"", "id_key", "events_insert",
                                    Stage::before_commit);
    EXPECT_THAT(error.message, Not(HasSubstr("secret"))) << state;
    EXPECT_THAT(error.message, HasSubstr("id_key")) << state;
  }
}

TEST(PostgresErrors, At_commit_all_is_in_doubt_but_what_surely_undoes_it) {
  for (const auto* state : {"57P01", "08006", "53100", "ZZ999", "40003"}) {
    const auto error = server_error(state, "", "", "session_commit", Stage::commit);
    EXPECT_EQ(error.code, commit_unknown) << state;
    EXPECT_EQ(error.disposition, in_doubt) << state;
  }
  for (const auto* state : {"40001", "40P01", "23503"}) {
    const auto error = server_error(state, "", "", "session_commit", Stage::commit);
    EXPECT_NE(error.disposition, in_doubt) << state;
  }
}

TEST(PostgresErrors, A_lost_connection_is_in_doubt_only_once_commit_was_sent) {
  EXPECT_EQ(connection_lost("gone", "events_claim", Stage::before_commit).code, unavailable);
  EXPECT_EQ(connection_lost("gone", "events_claim", Stage::before_commit).disposition, retry);
  EXPECT_EQ(connection_lost("gone", "events_insert", Stage::commit).code, commit_unknown);
  EXPECT_EQ(deadline_passed("events_claim", Stage::before_commit).code, timeout);
  EXPECT_EQ(deadline_passed("events_insert", Stage::commit).disposition, in_doubt);
}

TEST(PostgresErrors, The_state_of_a_failed_connect_stands_in_its_message) {
  EXPECT_EQ(
      state_in("connection to server at \"h\", port 1 failed: FATAL:  28P01: password "
               "authentication failed for user \"ann\"\nLOCATION:  auth_failed, auth.c:335\n"),
      "28P01");
  EXPECT_EQ(state_in("connection to server failed: FATAL:  57P03: the system is starting up\n"),
            "57P03");
  EXPECT_EQ(state_in("connection refused"), "");
  EXPECT_EQ(state_in(""), "");
}

ReadPosition position_at(std::int64_t seq, std::vector<XidRange> in_flight = {},
                         std::int64_t floor = 0) {
  return {seq, floor, std::move(in_flight), ServerIdentity{"77", 1}};
}

TEST(PostgresReadMark, A_mark_survives_being_text) {
  const auto position = position_at(42, {{7, 7, 0}, {9, 12, 5}, {1ULL << 40U, 1ULL << 41U, 0}}, 3);
  const auto mark = encode_mark(position);

  EXPECT_EQ(mark.text(), "42;3|7,9-12@5,1099511627776-2199023255552;77/1");
  ASSERT_TRUE(decode_mark(mark).ok());
  EXPECT_EQ(*decode_mark(mark), position);
  ASSERT_TRUE(mark_columns(mark).ok());
  EXPECT_EQ(mark_of(*mark_columns(mark)), mark);
  EXPECT_EQ(*decode_mark(ReadMark()), ReadPosition());
  EXPECT_EQ(encode_mark(ReadPosition()), ReadMark());
}

TEST(PostgresReadMark, A_text_that_is_no_mark_is_refused) {
  for (const auto* text : {"7", "x", "1;0|", "1;0|;", "1;0|;77", "1;0|5-3;77/1", "1;0|5,5;77/1",
                           "1;0|5,;77/1", "1;0;77/1", "1;0|;77/1;", ";0|;77/1", "-1;0|;77/1",
                           "1;0|;/1", "1;0|99999999999999999999;77/1"}) {
    const auto decoded = decode_mark(ReadMark(text));
    ASSERT_FALSE(decoded.ok()) << text;
    EXPECT_EQ(decoded.error().code, invalid_argument) << text;
  }
}

TEST(PostgresReadMark, A_snapshot_is_read) {
  const auto snapshot = parse_snapshot("5:9:5,7");

  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->xmin, 5U);
  EXPECT_EQ(snapshot->xmax, 9U);
  EXPECT_THAT(snapshot->in_progress, ElementsAre(5U, 7U));
  EXPECT_THAT(parse_snapshot("9:9:")->in_progress, IsEmpty());
  for (const auto* text : {"", "9", "9:8:", "5:9:,", "5:9:5,x", "a:b:c"}) {
    EXPECT_FALSE(parse_snapshot(text).ok()) << text;
  }
}

TEST(PostgresReadMark, The_next_xid_is_told_by_its_lower_half) {
  const std::uint64_t epoch = 1ULL << 32U;
  EXPECT_EQ(next_xid({0, 737, {}}, 734), 737U);
  EXPECT_EQ(next_xid({0, 735, {}}, 734), 737U);
  EXPECT_EQ(next_xid({0, epoch + 737, {}}, 734), epoch + 737);
  // Over the edge of an epoch, and where age() is negative.
  EXPECT_EQ(next_xid({0, epoch - 2, {}}, 1), epoch + 4);
  EXPECT_EQ(
      next_xid({0, 3'000'000'000ULL, {}}, static_cast<std::int32_t>(3'000'000'000U - 3U + 5U)),
      3'000'000'005ULL);
}

ReadStep step_to(std::int64_t last_seq, std::uint64_t xmax, std::vector<std::uint64_t> in_progress,
                 std::uint64_t next) {
  ReadStep step;
  step.snapshot = {in_progress.empty() ? xmax : in_progress.front(), xmax, std::move(in_progress)};
  step.next_xid = next;
  step.last_seq = last_seq;
  return step;
}

const ServerIdentity same_server{"77", 1};

TEST(PostgresReadMark, What_is_in_flight_reaches_from_the_snapshot_to_the_next_xid) {
  // The case that a reader by the snapshot's xmax alone loses: 734 is open and in no list.
  const auto after = advance(position_at(0), step_to(3, 734, {}, 736), same_server);

  EXPECT_EQ(after.seq, 3);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{734, 735, 0}));
}

TEST(PostgresReadMark, Without_a_new_row_the_list_only_shrinks) {
  const auto after =
      advance(position_at(5, {{3, 3, 0}, {6, 9, 0}}), step_to(5, 8, {7}, 12), same_server);

  EXPECT_EQ(after.seq, 5);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{7, 9, 0}));
}

TEST(PostgresReadMark, With_a_new_row_the_list_is_that_of_the_snapshot) {
  const auto after = advance(position_at(5, {{3, 3, 0}}), step_to(9, 8, {4, 7}, 8), same_server);

  EXPECT_EQ(after.seq, 9);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{4, 4, 0}, XidRange{7, 7, 0}));
}

TEST(PostgresReadMark, Late_rows_that_were_left_are_read_from_where_they_were_left) {
  auto step = step_to(5, 8, {7}, 8);
  step.late_up_to = 4;

  const auto after = advance(position_at(5, {{3, 4, 0}, {7, 7, 0}}), step, same_server);

  EXPECT_EQ(after.seq, 5);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{3, 4, 4}, XidRange{7, 7, 0}));
}

TEST(PostgresReadMark, Of_several_marks_the_earliest_of_everything_counts) {
  const auto merged = earlier(position_at(9, {{3, 6, 0}, {8, 8, 2}}, 1),
                              position_at(4, {{5, 8, 1}, {10, 10, 0}}, 2));

  EXPECT_EQ(merged.seq, 4);
  EXPECT_EQ(merged.floor, 1);
  EXPECT_THAT(merged.in_flight,
              ElementsAre(XidRange{3, 6, 0}, XidRange{7, 8, 1}, XidRange{10, 10, 0}));
}

TEST(PostgresReadMark, F37_on_another_system_old_xids_are_read_once_and_then_mean_nothing) {
  const ServerIdentity restored{"88", 1};
  const auto adopted = adopt(position_at(100, {{700, 700, 0}}), 100);
  EXPECT_EQ(adopted.seq, 100);

  const auto after = advance(adopted, step_to(103, 740, {701}, 741), restored);

  EXPECT_EQ(after.floor, 100) << "rows that were restored carry numbers that are given out anew";
  EXPECT_EQ(after.seq, 103);
  EXPECT_EQ(after.identity, restored);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{701, 701, 0}, XidRange{740, 740, 0}));
}

TEST(PostgresReadMark, F36_a_promoted_standby_keeps_xids_and_so_the_list) {
  const ServerIdentity promoted{"77", 2};

  const auto after = advance(adopt(position_at(100, {{700, 700, 0}}), 120),
                             step_to(101, 740, {700}, 740), promoted);

  EXPECT_EQ(after.floor, 0);
  EXPECT_THAT(after.in_flight, ElementsAre(XidRange{700, 700, 0}));
  EXPECT_EQ(after.identity, promoted);
}

TEST(PostgresReadMark, F36_a_position_that_the_sequence_has_not_reached_proves_nothing) {
  EXPECT_EQ(adopt(position_at(100, {}, 50), 99).seq, 0);
  EXPECT_EQ(adopt(position_at(100, {}, 50), 99).floor, 0);
}

TEST(PostgresRows, Partitions_are_bits_as_the_server_counts_them) {
  EXPECT_EQ(partition_bits({Partition(0), Partition(9)}, 12), std::string("\x01\x02", 2));
  EXPECT_EQ(partition_bits({Partition(12), Partition(-1)}, 12), std::string(2, '\0'));
}

}  // namespace
}  // namespace postrider::store::postgres

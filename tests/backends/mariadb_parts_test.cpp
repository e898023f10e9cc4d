// The parts of the MariaDB store that need no server.

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/mariadb/mariadb_errors.hpp"
#include "store/mariadb/mariadb_query.hpp"
#include "store/mariadb/mariadb_read_mark.hpp"
#include "store/mariadb/mariadb_script.hpp"
#include "store/mariadb/mariadb_url.hpp"

namespace postrider::store::mariadb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Read marks.

TEST(MariadbReadMark, Numbers_that_are_passed_over_are_missing_until_they_are_found) {
  ReadPosition position;
  go_on_to(position, 1, 7);
  EXPECT_THAT(position.missing, IsEmpty());
  go_on_to(position, 5, 8);
  go_on_to(position, 7, 9);

  EXPECT_EQ(position.seq, 7);
  EXPECT_THAT(position.missing, ElementsAre(Missing{2, 4, 8}, Missing{6, 6, 9}));
  take_found(position, 3);
  EXPECT_THAT(position.missing, ElementsAre(Missing{2, 2, 8}, Missing{4, 4, 8}, Missing{6, 6, 9}));
  for (const auto seq : {2, 4, 6, 5})
    take_found(position, seq);
  EXPECT_THAT(position.missing, IsEmpty());
}

TEST(MariadbReadMark, Its_text_says_all_of_it) {
  ReadPosition position;
  for (const std::int64_t seq : {3, 5, 6, 9})
    go_on_to(position, seq, 1'700'000'000'000 + seq);
  const auto mark = encode_mark(position);

  EXPECT_EQ(mark.text(), "9;1-2@1700000000003,4@1700000000005,7-8@1700000000009");
  const auto read = decode_mark(mark);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, position);
  EXPECT_EQ(*decode_mark(ReadMark()), ReadPosition());
  EXPECT_EQ(decode_mark(ReadMark("12"))->seq, 12);
}

TEST(MariadbReadMark, A_text_that_is_none_of_ours_is_refused) {
  for (const auto* text : {"x", "-1", "1;", "5;3", "5;3@", "5;3-2@1", "5;3-3@1", "5;3@1,", "5;6@1",
                           "5;3@1,2@1", "5;1-3@1,3@1", "1 ", "99999999999999999999", "4;1@1;2@1"}) {
    EXPECT_FALSE(decode_mark(ReadMark(text)).ok()) << text;
  }
}

TEST(MariadbReadMark, After_two_marks_everything_is_read_that_is_unread_after_any_of_them) {
  const ReadPosition low{10, {{3, 4, 1}, {8, 8, 5}}};
  const ReadPosition high{20, {{4, 6, 2}, {9, 15, 3}}};

  const auto both = earlier(low, high);

  EXPECT_EQ(both.seq, 10);
  EXPECT_THAT(both.missing, ElementsAre(Missing{3, 6, 2}, Missing{8, 8, 5}, Missing{9, 10, 3}));
  EXPECT_EQ(earlier(high, low), both);
}

TEST(MariadbReadMark, The_list_of_missing_numbers_has_a_bound_and_keeps_the_latest) {
  ReadPosition position;
  for (std::int64_t i = 1; i <= static_cast<std::int64_t>(most_ranges) + 10; ++i)
    go_on_to(position, 2 * i, 0);
  EXPECT_EQ(patience_for(position), crowded_gap_grace);

  forget_beyond_bound(position);

  EXPECT_EQ(position.missing.size(), most_ranges);
  EXPECT_EQ(position.missing.front().first, 21);
}

// Errors.

TEST(MariadbErrors, Each_number_has_one_row_in_ascending_order) {
  const auto rows = error_rows();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.native < b.native; }));
  std::set<unsigned> numbers;
  for (const auto& row : rows) {
    EXPECT_TRUE(numbers.insert(row.native).second) << row.native;
    const auto error = mariadb_error(row.native, "", "events_claim");
    EXPECT_EQ(error.code, row.code) << row.native;
    EXPECT_EQ(error.disposition, row.disposition) << row.native;
    EXPECT_TRUE(error.message.ends_with('.')) << error.message;
    EXPECT_EQ(error.native_code, std::to_string(row.native));
    EXPECT_EQ(error.origin, "mariadb");
  }
}

struct NumberCase {
  unsigned native;
  ErrorCode code;
  Disposition disposition;
};

TEST(MariadbErrors, What_stands_in_the_way_for_a_moment_is_to_be_repeated) {
  using enum ErrorCode;
  for (const auto& [native, code, disposition] :
       {NumberCase{1205, busy, Disposition::retry}, NumberCase{1213, conflict, Disposition::retry},
        NumberCase{1020, conflict, Disposition::retry},
        NumberCase{2006, unavailable, Disposition::retry},
        NumberCase{2013, unavailable, Disposition::retry},
        NumberCase{1969, timeout, Disposition::retry},
        NumberCase{65'000, protocol, Disposition::retry}}) {
    const auto error = mariadb_error(native, "", "events_claim");
    EXPECT_EQ(error.code, code) << native;
    EXPECT_EQ(error.disposition, disposition) << native;
  }
}

TEST(MariadbErrors, A_commit_without_an_answer_is_in_doubt_and_one_that_was_undone_is_not) {
  for (const unsigned native : {2006U, 2013U, 1053U, 1927U, 1969U, 65'000U}) {
    const auto error = mariadb_error(native, "", "commit", Phase::commit);
    EXPECT_EQ(error.code, ErrorCode::commit_unknown) << native;
    EXPECT_EQ(error.disposition, Disposition::in_doubt) << native;
  }
  for (const unsigned native : {1205U, 1213U, 1020U}) {
    EXPECT_EQ(mariadb_error(native, "", "commit", Phase::commit).disposition, Disposition::retry);
  }
  EXPECT_EQ(deadline_passed("commit", Phase::commit).code, ErrorCode::commit_unknown);
  EXPECT_EQ(deadline_passed("events_claim").code, ErrorCode::timeout);
}

TEST(MariadbErrors, A_message_names_the_broken_rule_and_never_a_value) {
  const auto check = mariadb_error(
      4025, "CONSTRAINT `type_has_1_to_255_bytes` failed for `shop`.`outbox_events`", "x");
  EXPECT_THAT(check.message, HasSubstr("type_has_1_to_255_bytes"));
  const auto taken =
      mariadb_error(1062, "Duplicate entry 'secret' for key 'outbox_events_id_key'", "x");
  EXPECT_THAT(taken.message, HasSubstr("outbox_events_id_key"));
  EXPECT_THAT(taken.message, Not(HasSubstr("secret")));
  const auto hostile =
      mariadb_error(1062, "Duplicate entry '' for key 'My Secret'' for key 'PRIMARY'", "x");
  EXPECT_THAT(hostile.message, Not(HasSubstr("Secret")));
}

// Literals.

TEST(MariadbLiterals, Quotes_backslashes_and_nul_are_escaped_and_nothing_else) {
  EXPECT_EQ(text_literal("it's", Quoting::backslashes), R"('it\'s')");
  EXPECT_EQ(text_literal("a\\' OR 1=1 -- ", Quoting::backslashes), R"('a\\\' OR 1=1 -- ')");
  EXPECT_EQ(text_literal(std::string_view("a\0b", 3), Quoting::backslashes), R"('a\0b')");
  EXPECT_EQ(text_literal("ü\n\"%", Quoting::backslashes), "'ü\n\"%'");
  EXPECT_EQ(bytes_literal("\xff'", Quoting::backslashes), "_binary'\xff\\''");
}

TEST(MariadbLiterals, On_anybodys_session_they_are_hexadecimal) {
  EXPECT_EQ(text_literal("a'", Quoting::hexadecimal), "_utf8mb4 x'6127'");
  EXPECT_EQ(text_literal("", Quoting::hexadecimal), "_utf8mb4 x''");
  EXPECT_EQ(bytes_literal("\xff", Quoting::hexadecimal), "x'ff'");
}

TEST(MariadbLiterals, Times_go_there_and_back_with_microseconds) {
  const auto time = parse_datetime("2026-02-03 04:05:06.000007");
  ASSERT_TRUE(time);
  EXPECT_EQ(datetime_text(*time), "2026-02-03 04:05:06.000007");
  EXPECT_FALSE(parse_datetime("2026-02-03T04:05:06.000007"));
  EXPECT_FALSE(parse_datetime("2026-02-03 04:05:06"));
  EXPECT_FALSE(parse_datetime("0000-00-00 00:00:00.000000"));
}

// URLs.

TEST(MariadbUrl, Its_parts_are_decoded) {
  const auto address = parse_url("mariadb://app%40shop:p%3Aw%2F@db.example:3307/sh%20op");
  ASSERT_TRUE(address.ok()) << describe(address.error());
  EXPECT_EQ(address->user, "app@shop");
  EXPECT_EQ(address->password, "p:w/");
  EXPECT_EQ(address->host, "db.example");
  EXPECT_EQ(address->port, 3307U);
  EXPECT_EQ(address->database, "sh op");
}

TEST(MariadbUrl, S16_TLS_is_verified_unless_the_server_is_this_machine_or_it_is_said) {
  EXPECT_TRUE(parse_url("mariadb://u@db.example/d")->tls);
  EXPECT_FALSE(parse_url("mariadb://u@localhost/d")->tls);
  EXPECT_FALSE(parse_url("mariadb://u@127.0.0.1:4000/d")->tls);
  EXPECT_FALSE(parse_url("mariadb://u@[::1]:4000/d")->tls);
  EXPECT_FALSE(parse_url("mariadb://u@db.example/d?tls=off")->tls);
  EXPECT_TRUE(parse_url("mariadb://u@127.0.0.1/d?tls=verify&tls_ca=/etc/ca.pem")->tls);
  EXPECT_EQ(parse_url("mariadb://u@db/d?tls_ca=/etc/ca.pem")->tls_ca, "/etc/ca.pem");
  EXPECT_EQ(parse_url("mariadb://u@/d?socket=/run/my.sock")->socket, "/run/my.sock");
}

TEST(MariadbUrl, One_that_cannot_be_used_is_refused_without_being_shown) {
  for (const auto* url :
       {"mariadb://", "postgresql://u@h/d", "mariadb://h/d", "mariadb://@h/d",
        "mariadb://u:secret@h", "mariadb://u:secret@h/", "mariadb://u:secret@/d",
        "mariadb://u:secret@h:0/d", "mariadb://u:secret@h:99999/d", "mariadb://u:secret@h:x/d",
        "mariadb://u:secret%2@h/d", "mariadb://u:secret%00@h/d", "mariadb://u:secret@h/d?tls=maybe",
        "mariadb://u:secret@h/d?timeout=3", "mariadb://u:secret@[::1/d"}) {
    const auto parsed = parse_url(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_EQ(parsed.error().code, ErrorCode::config_invalid);
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("secret")));
  }
}

// Scripts.

TEST(MariadbScript, Statements_end_where_the_shell_ends_them) {
  const auto statements = statements_of(R"(-- A comment; with a semicolon.
CREATE TABLE a (
  b INT);

DELIMITER //
CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW
BEGIN
  SET NEW.b = 1;
END
//
DELIMITER ;
DROP TABLE a;
)");

  EXPECT_THAT(statements, ElementsAre("CREATE TABLE a (\n  b INT)\n",
                                      "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW\nBEGIN\n"
                                      "  SET NEW.b = 1;\nEND\n\n",
                                      "DROP TABLE a\n"));
}

}  // namespace
}  // namespace postrider::store::mariadb

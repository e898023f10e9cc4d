// Log lines in both formats, also of texts that want to be something else.

#include "observe/log.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <postrider/testing/manual_clock.hpp>

#include "golden/golden.hpp"

namespace postrider::observe {
namespace {

using ::testing::HasSubstr;

const Timestamp start{std::chrono::microseconds(testing::ManualClock::start_us)};

Notice retry() {
  Notice notice;
  notice.kind = NoticeKind::retry_scheduled;
  notice.route = "all";
  notice.event_id = EventId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value());
  notice.event_seq = Seq(12);
  notice.event_type = "order.placed";
  notice.delivery_id = DeliveryId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8058").value());
  notice.dispatch_id = DispatchId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8059").value());
  notice.status = DeliveryStatus::pending;
  notice.attempts = 2;
  notice.wait = milliseconds(5000);
  notice.partition = Partition(3);
  notice.code = "timeout";
  notice.detail = "No answer for 30 s.";
  return notice;
}

std::string line(LineFormat format, const Notice& notice) {
  return format_line(format, start, severity_of(notice.kind), to_string(notice.kind),
                     fields_of(notice));
}

// Texts that try to end the line, to forge a field, or to steer a terminal.
const std::vector<std::pair<std::string, std::string>> hostile = {
    {"quotes", R"(say "no"\)"},
    {"lines", "a\nlevel=error b\r\n"},
    {"field", "x code=forged"},
    {"escape", "\x1b[31mred\x1b[0m"},
    {"c1",
     "\xc2\x9b"
     "31m"},
    {"delete", "\x7f\b"},
    {"reverse",
     "\xe2\x80\xae"
     "txt.exe"},
    {"separator", "\xe2\x80\xa8next"},
    {"invalid",
     "\xff\xfe"
     "a\xc3"},
    {"nul", std::string("a\0b", 3)},
    {"cyrillic", "заказ принят"},
    {"empty", ""},
};

std::string hostile_lines(LineFormat format) {
  std::string lines;
  for (const auto& [name, text] : hostile) {
    lines += format_line(format, start, Severity::warning, name, {{"code", text}}) + "\n";
  }
  return lines;
}

TEST(LogLine, R_234_a_line_about_a_job_names_it_and_its_queue) {
  auto notice = retry();
  notice.job = "ship_order";
  notice.queue = "shipping";
  const auto text = line(LineFormat::text, notice);
  EXPECT_NE(text.find(" job=ship_order queue=shipping "), std::string::npos) << text;
}

TEST(LogLine, all_fields_of_a_notice_have_the_names_they_have_there) {
  testing::expect_golden("log_notice.txt", line(LineFormat::json, retry()) + "\n" +
                                               line(LineFormat::text, retry()) + "\n");
}

TEST(LogLine, fields_that_do_not_apply_are_left_out) {
  Notice notice;
  notice.kind = NoticeKind::store_recovered;
  EXPECT_EQ(line(LineFormat::json, notice),
            R"({"time":"2026-01-01T00:00:00.000000Z","level":"info","kind":"store_recovered"})");
  EXPECT_EQ(line(LineFormat::text, notice), "2026-01-01T00:00:00.000000Z INFO store_recovered");
}

TEST(LogLine, a_purge_tells_what_and_how_many) {
  Notice notice;
  notice.kind = NoticeKind::rows_purged;
  notice.code = "events";
  notice.rows = 541;
  EXPECT_EQ(line(LineFormat::text, notice),
            "2026-01-01T00:00:00.000000Z INFO rows_purged rows=541 code=events");
}

TEST(LogLine, hostile_texts_stay_texts) {
  testing::expect_golden("log_hostile_json.txt", hostile_lines(LineFormat::json));
  testing::expect_golden("log_hostile_text.txt", hostile_lines(LineFormat::text));
}

TEST(LogLine, each_hostile_record_is_one_line_of_valid_json) {
  std::istringstream lines(hostile_lines(LineFormat::json));
  std::size_t count = 0;
  for (std::string each; std::getline(lines, each); ++count) {
    EXPECT_EQ(nlohmann::json::parse(each).at("kind"), hostile[count].first);
  }
  EXPECT_EQ(count, hostile.size());
}

TEST(LogLine, json_is_safe_to_print_on_a_terminal) {
  const auto lines = hostile_lines(LineFormat::json);
  EXPECT_EQ(lines.find('\x7f'), std::string::npos);
  EXPECT_EQ(lines.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(lines.find("\xe2\x80\xae"), std::string::npos);
}

TEST(LogLine, text_holds_no_control_character_at_all) {
  for (const unsigned char c : hostile_lines(LineFormat::text)) {
    EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7F));
  }
}

std::vector<std::string> lines_at(Severity level) {
  auto pattern = (std::filesystem::temp_directory_path() / "postrider-log-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const auto path = (folder / "log").string();
  const testing::ManualClock clock;
  {
    Log log({LineFormat::text, level, path}, clock);
    LogObserver observer(log);
    for (const auto kind : {NoticeKind::delivery_completed, NoticeKind::lease_gained,
                            NoticeKind::retry_scheduled, NoticeKind::delivery_failed}) {
      Notice notice;
      notice.kind = kind;
      observer.notice(notice);
    }
  }
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string each; std::getline(file, each);)
    lines.push_back(each);
  std::filesystem::remove_all(folder);
  return lines;
}

TEST(Log, drops_what_is_below_its_level) {
  EXPECT_EQ(lines_at(Severity::debug).size(), 4U);
  EXPECT_EQ(lines_at(Severity::info).size(), 3U);
  EXPECT_EQ(lines_at(Severity::warning).size(), 2U);
  EXPECT_THAT(lines_at(Severity::error),
              ::testing::ElementsAre("2026-01-01T00:00:00.000000Z ERROR delivery_failed"));
}

TEST(Log, R_236_R_237_R_238_a_notice_is_logged_at_the_severity_that_was_asked_for) {
  EXPECT_EQ(severity_of(NoticeKind::retry_scheduled), Severity::warning);
  EXPECT_EQ(severity_of(NoticeKind::result_stale), Severity::warning);
  EXPECT_EQ(severity_of(NoticeKind::delivery_failed), Severity::error);
}

}  // namespace
}  // namespace postrider::observe

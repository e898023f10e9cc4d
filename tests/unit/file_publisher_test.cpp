// The JSON Lines publisher: its format, and what a disk or a pipe that fails does to it.

#include "publisher/file/file_publisher.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/descriptor.hpp"
#include "publisher/file/file_errors.hpp"
#include "values/event_line.hpp"

namespace postrider::file {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "postrider-file-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

Event event(std::int64_t seq, std::string payload = "{}") {
  Event event;
  event.seq = Seq(seq);
  event.id = EventId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value());
  event.aggregate = Aggregate{"order", "1"};
  event.type = "order.placed";
  event.payload = std::move(payload);
  event.content_type = "application/json";
  event.created_at = Timestamp(std::chrono::microseconds(1'767'225'600'000'123));
  return event;
}

Message message(std::int64_t number, milliseconds timeout = std::chrono::seconds(30)) {
  Message message;
  message.attempt = AttemptId(static_cast<std::uint64_t>(number));
  message.event = std::make_shared<Event>(event(number));
  message.timeout = timeout;
  return message;
}

std::vector<Message> messages(std::int64_t count) {
  std::vector<Message> all;
  for (std::int64_t number = 1; number <= count; ++number)
    all.push_back(message(number));
  return all;
}

Deadline soon() {
  return Deadline::after(std::chrono::seconds(5));
}
Deadline at_once() {
  return Deadline::after(milliseconds(0));
}

// The outcomes of one submit and the poll after it, as "kind/code".
std::vector<std::string> send(Publisher& publisher, const std::vector<Message>& batch) {
  const auto submitted = publisher.submit(batch, soon());
  if (!submitted.ok()) return {"error/" + std::string(to_string(submitted.error().code))};
  std::vector<std::string> words;
  for (const auto& [attempt, outcome] : publisher.poll(soon())) {
    words.push_back(std::string(to_string(outcome.kind)) + "/" + outcome.code);
  }
  return words;
}

// System calls that fail where a test says so.
struct Faults {
  static inline int write_error = 0;
  static inline std::size_t bytes_before_error = 0;
  static inline int sync_error = 0;
  static inline int truncate_error = 0;
  static inline int syncs = 0;

  static void reset() {
    write_error = sync_error = truncate_error = syncs = 0;
    bytes_before_error = 0;
  }
  static ssize_t write(int fd, const void* bytes, std::size_t size) {
    if (write_error == 0) return ::write(fd, bytes, size);
    if (bytes_before_error == 0) {
      errno = write_error;
      return -1;
    }
    const auto part = std::min(size, bytes_before_error);
    bytes_before_error -= part;
    return ::write(fd, bytes, part);
  }
  static int fdatasync(int fd) {
    ++syncs;
    if (sync_error == 0) return ::fdatasync(fd);
    errno = sync_error;
    return -1;
  }
  static int ftruncate(int fd, off_t size) {
    if (truncate_error == 0) return ::ftruncate(fd, size);
    errno = truncate_error;
    return -1;
  }
  static FileCalls calls() { return {write, fdatasync, ftruncate}; }
};

class FilePublisherTest : public ::testing::Test {
 protected:
  void SetUp() override { Faults::reset(); }
  std::unique_ptr<Publisher> open(const std::string& path) {
    return make_file_publisher(FileOptions{path, 1000}, Faults::calls());
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("events.jsonl");
  const std::size_t line_size_ = event_line(event(1)).value().size();
};

TEST(EventLine, has_the_documented_members_in_the_documented_order) {
  auto full = event(7, "{\"id\":1}");
  full.headers = {{"b", "2"}, {"a", "1\n"}};
  EXPECT_EQ(event_line(full).value(),
            R"({"id":"01890a5d-ac96-774b-bcce-b302099a8057","seq":"7","aggregate_type":"order",)"
            R"("aggregate_id":"1","type":"order.placed","content_type":"application/json",)"
            R"("headers":{"a":"1\n","b":"2"},"created_at":"2026-01-01T00:00:00.000123Z",)"
            R"("payload":"{\"id\":1}"})"
            "\n");
}

TEST(EventLine, says_null_where_there_is_no_aggregate) {
  auto lonely = event(1);
  lonely.aggregate.reset();
  EXPECT_THAT(event_line(lonely).value(),
              HasSubstr(R"("aggregate_type":null,"aggregate_id":null,)"));
}

TEST(EventLine, keeps_every_payload_unchanged) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", R"("payload":"")"},
      {"жук", R"("payload":"жук")"},
      {"two\nlines", R"("payload":"two\nlines")"},
      {std::string("\0", 1), R"("payload":"\u0000")"},
      {"\xff", R"("payload_base64":"/w==")"},
      {"\xff\xfe", R"("payload_base64":"//4=")"},
      {"a\xff\xfe", R"("payload_base64":"Yf/+")"},
      {"\xed\xa0\x80!", R"("payload_base64":"7aCAIQ==")"},
  };
  for (const auto& [payload, expected] : rows) {
    const auto line = event_line(event(1, payload)).value();
    EXPECT_THAT(line, EndsWith(expected + "}\n"));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  }
}

TEST(EventLine, refuses_other_texts_that_json_could_not_hold) {
  const std::vector<std::pair<std::string, std::function<void(Event&)>>> rows = {
      {"type", [](Event& e) { e.type = "\xff"; }},
      {"aggregate_type", [](Event& e) { e.aggregate->type = "\xff"; }},
      {"aggregate_id", [](Event& e) { e.aggregate->id = "\xff"; }},
      {"content_type", [](Event& e) { e.content_type = "\xff"; }},
      {"headers", [](Event& e) { e.headers["a"] = "\xff"; }},
      {"headers", [](Event& e) { e.headers["\xff"] = "a"; }},
  };
  for (const auto& [member, spoil] : rows) {
    auto broken = event(1);
    spoil(broken);
    const auto line = event_line(broken);
    ASSERT_FALSE(line.ok());
    EXPECT_THAT(line.error().message, HasSubstr(member + " is not valid UTF-8"));
  }
}

TEST(FileErrors, each_known_errno_has_its_row) {
  struct Row {
    int native;
    ErrorCode code;
    Disposition disposition;
  };
  const std::vector<Row> rows = {
      {ENOSPC, ErrorCode::storage_failed, Disposition::retry},
      {EDQUOT, ErrorCode::storage_failed, Disposition::retry},
      {EFBIG, ErrorCode::storage_failed, Disposition::retry},
      {EIO, ErrorCode::storage_failed, Disposition::retry},
      {EACCES, ErrorCode::permission_denied, Disposition::stop},
      {EPERM, ErrorCode::permission_denied, Disposition::stop},
      {EROFS, ErrorCode::permission_denied, Disposition::stop},
      {ENOENT, ErrorCode::not_found, Disposition::retry},
      {ENOTDIR, ErrorCode::config_invalid, Disposition::stop},
      {EISDIR, ErrorCode::config_invalid, Disposition::stop},
      {ELOOP, ErrorCode::config_invalid, Disposition::stop},
      {ENAMETOOLONG, ErrorCode::config_invalid, Disposition::stop},
      {EPIPE, ErrorCode::unavailable, Disposition::retry},
      {ENXIO, ErrorCode::unavailable, Disposition::retry},
      {EMFILE, ErrorCode::limit_exceeded, Disposition::retry},
      {ENFILE, ErrorCode::limit_exceeded, Disposition::retry},
      {EBADMSG, ErrorCode::storage_failed, Disposition::retry},  // unknown ones
  };
  for (const auto& row : rows) {
    const auto error = file_error(row.native, "x");
    EXPECT_EQ(error.code, row.code) << row.native;
    EXPECT_EQ(error.disposition, row.disposition) << row.native;
    EXPECT_EQ(error.native_code, std::to_string(row.native));
    EXPECT_THAT(error.message, EndsWith("."));
  }
}

TEST_F(FilePublisherTest, appends_in_order_and_confirms_after_one_sync) {
  const auto publisher = open(path_);
  EXPECT_THAT(send(*publisher, messages(3)), ElementsAre("confirmed/", "confirmed/", "confirmed/"));
  EXPECT_EQ(Faults::syncs, 1);
  EXPECT_EQ(content(path_), event_line(event(1)).value() + event_line(event(2)).value() +
                                event_line(event(3)).value());
}

TEST_F(FilePublisherTest, closes_a_line_that_a_crash_has_cut) {
  write(path_, "{\"id\":\"cut");
  EXPECT_THAT(send(*open(path_), messages(1)), ElementsAre("confirmed/"));
  EXPECT_EQ(content(path_), "{\"id\":\"cut\n" + event_line(event(1)).value());
}

TEST_F(FilePublisherTest, goes_on_in_a_new_file_after_a_log_rotation) {
  const auto publisher = open(path_);
  send(*publisher, messages(1));
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("confirmed/"));
  EXPECT_EQ(content(path_ + ".1"), event_line(event(1)).value());
  EXPECT_EQ(content(path_), event_line(event(2)).value());
}

TEST_F(FilePublisherTest, a_full_disk_confirms_what_is_whole_and_takes_the_cut_line_back) {
  const auto publisher = open(path_);
  Faults::write_error = ENOSPC;
  Faults::bytes_before_error = line_size_ + 5;
  EXPECT_THAT(send(*publisher, messages(3)), ElementsAre("confirmed/", "unavailable/storage_failed",
                                                         "unavailable/storage_failed"));
  EXPECT_EQ(content(path_), event_line(event(1)).value());

  Faults::reset();
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("confirmed/"));
  EXPECT_EQ(content(path_), event_line(event(1)).value() + event_line(event(2)).value());
}

TEST_F(FilePublisherTest, a_cut_line_that_cannot_be_taken_back_is_unknown_and_closed_later) {
  const auto publisher = open(path_);
  Faults::write_error = ENOSPC;
  Faults::bytes_before_error = 5;
  Faults::truncate_error = EIO;
  EXPECT_THAT(send(*publisher, messages(2)),
              ElementsAre("unknown/connection_lost", "unavailable/storage_failed"));

  Faults::reset();
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("confirmed/"));
  EXPECT_EQ(content(path_),
            event_line(event(1)).value().substr(0, 5) + "\n" + event_line(event(2)).value());
}

TEST_F(FilePublisherTest, a_failed_sync_confirms_nothing_and_leaves_nothing) {
  const auto publisher = open(path_);
  send(*publisher, messages(1));
  Faults::sync_error = EIO;
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("unavailable/storage_failed"));
  EXPECT_EQ(content(path_), event_line(event(1)).value());

  Faults::reset();
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("confirmed/"));
}

TEST_F(FilePublisherTest, a_failed_sync_whose_lines_stay_is_unknown) {
  Faults::sync_error = EIO;
  Faults::truncate_error = EIO;
  EXPECT_THAT(send(*open(path_), messages(1)), ElementsAre("unknown/connection_lost"));
}

TEST_F(FilePublisherTest, a_device_that_is_full_confirms_nothing) {
  EXPECT_THAT(send(*open("/dev/full"), messages(2)),
              ElementsAre("unavailable/storage_failed", "unavailable/storage_failed"));
}

TEST_F(FilePublisherTest, a_destination_that_cannot_be_opened_is_an_error_of_the_submit) {
  EXPECT_THAT(send(*open(folder_.file("missing/events.jsonl")), messages(1)),
              ElementsAre("error/not_found"));
  EXPECT_THAT(send(*open(folder_.path().string()), messages(1)),
              ElementsAre("error/config_invalid"));
  write(path_, "");
  EXPECT_THAT(send(*open(path_ + "/x"), messages(1)), ElementsAre("error/config_invalid"));
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  EXPECT_THAT(send(*open(folder_.file("fifo")), messages(1)), ElementsAre("error/unavailable"));
}

TEST_F(FilePublisherTest, a_fifo_whose_reader_leaves_is_unavailable_and_no_signal) {
  const auto fifo = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto publisher = open(fifo);
  EXPECT_THAT(send(*publisher, messages(1)), ElementsAre("confirmed/"));
  reader.reset();
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("unavailable/unavailable"));
}

TEST_F(FilePublisherTest, a_pipe_that_nobody_empties_gives_up_after_the_timeout) {
  const auto fifo = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto publisher = open(fifo);
  std::vector<Message> batch;
  for (int number = 1; number <= 1000; ++number)
    batch.push_back(message(number, milliseconds(50)));
  ASSERT_TRUE(publisher->submit(batch, soon()).ok());

  std::size_t confirmed = 0, unknown = 0, unavailable = 0;
  while (confirmed + unknown + unavailable < batch.size()) {
    for (const auto& [attempt, outcome] : publisher->poll(soon())) {
      confirmed += outcome.kind == OutcomeKind::confirmed ? 1 : 0;
      unknown += outcome.kind == OutcomeKind::unknown ? 1 : 0;
      unavailable += outcome.kind == OutcomeKind::unavailable ? 1 : 0;
    }
  }
  EXPECT_GT(confirmed, 0U);  // what the pipe's buffer took
  EXPECT_LE(unknown, 1U);    // at most one line is cut
  EXPECT_GT(unavailable, 0U);
}

TEST_F(FilePublisherTest, a_lock_that_is_never_given_back_ends_with_the_timeout) {
  write(path_, "");
  const Descriptor other(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  EXPECT_THAT(send(*open(path_), {message(1, milliseconds(20))}), ElementsAre("unavailable/stuck"));
  EXPECT_EQ(content(path_), "");
}

TEST_F(FilePublisherTest, two_relays_may_share_a_file) {
  const auto one = open(path_);
  const auto two = open(path_);
  EXPECT_THAT(send(*one, {message(1)}), ElementsAre("confirmed/"));
  EXPECT_THAT(send(*two, {message(2)}), ElementsAre("confirmed/"));
  EXPECT_THAT(send(*one, {message(3)}), ElementsAre("confirmed/"));
  EXPECT_EQ(content(path_), event_line(event(1)).value() + event_line(event(2)).value() +
                                event_line(event(3)).value());
}

TEST_F(FilePublisherTest, what_json_cannot_hold_is_rejected_alone) {
  auto broken = event(2);
  broken.type = "\xff";
  auto batch = messages(1);
  batch.push_back(message(2));
  batch.back().event = std::make_shared<Event>(broken);
  EXPECT_THAT(send(*open(path_), batch), ElementsAre("rejected/not_utf8", "confirmed/"));
}

TEST_F(FilePublisherTest, what_was_not_written_at_the_close_is_unknown) {
  const auto publisher = open(path_);
  ASSERT_TRUE(publisher->submit(messages(1), soon()).ok());
  const auto outcomes = publisher->close(soon());
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].outcome.kind, OutcomeKind::unknown);
  EXPECT_THAT(publisher->close(soon()), IsEmpty());
  EXPECT_THAT(publisher->poll(at_once()), IsEmpty());
  EXPECT_THAT(send(*publisher, {message(2)}), ElementsAre("confirmed/"));
}

TEST_F(FilePublisherTest, wake_ends_a_poll_that_waits_for_nothing) {
  const auto publisher = open(path_);
  publisher->wake();  // before the poll
  EXPECT_THAT(publisher->poll(Deadline::after(std::chrono::hours(1))), IsEmpty());
  std::jthread waker([&] { publisher->wake(); });  // during it, or just before
  EXPECT_THAT(publisher->poll(Deadline::after(std::chrono::hours(1))), IsEmpty());
}

TEST_F(FilePublisherTest, declares_what_it_can) {
  const auto file = make_file_publisher(FileOptions{path_, 10}, system_calls())->traits();
  EXPECT_EQ(file.name, "file");
  EXPECT_EQ(file.window, 10U);
  EXPECT_TRUE(file.durable);
  const auto standard_output = make_file_publisher(FileOptions{}, system_calls())->traits();
  EXPECT_EQ(standard_output.name, "stdout");
  EXPECT_FALSE(standard_output.durable);
}

}  // namespace
}  // namespace postrider::file

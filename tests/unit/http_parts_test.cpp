// The parts of the HTTP publisher that need no connection.

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include <postrider/publisher/http.hpp>

#include "publisher/http/http_addresses.hpp"
#include "publisher/http/http_answer.hpp"
#include "publisher/http/http_errors.hpp"
#include "publisher/http/http_message.hpp"
#include "publisher/http/http_pace.hpp"

namespace postrider::http {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

AddressGuard guard(const std::vector<std::string>& allowed = {}) {
  return AddressGuard::make(allowed).value();
}

bool allows(const AddressGuard& checked, const std::string& host) {
  const auto address = address_of(host);
  if (!address) ADD_FAILURE() << host << " is no address";
  return address && checked.allows(*address);
}

TEST(HttpAddresses, F112_and_WT_04_no_spelling_of_an_address_that_is_not_public_is_allowed) {
  for (const auto* const host : {"127.0.0.1",
                                 "127.255.255.255",
                                 "2130706433",
                                 "0x7f000001",
                                 "0177.0.0.1",
                                 "127.1",
                                 "0",
                                 "0.0.0.0",
                                 "0.1.2.3",
                                 "10.0.0.1",
                                 "100.64.0.1",
                                 "100.127.255.255",
                                 "169.254.169.254",
                                 "172.16.0.1",
                                 "172.31.255.255",
                                 "192.0.0.8",
                                 "192.0.2.1",
                                 "192.88.99.1",
                                 "192.168.1.1",
                                 "198.18.0.1",
                                 "198.19.255.255",
                                 "198.51.100.7",
                                 "203.0.113.7",
                                 "224.0.0.1",
                                 "240.0.0.1",
                                 "255.255.255.255",
                                 "::",
                                 "::1",
                                 "fc00::1",
                                 "fdff::1",
                                 "fe80::1",
                                 "fe80::1%eth0",
                                 "fec0::1",
                                 "ff02::1",
                                 "2001:db8::1",
                                 "2001::1",
                                 "100::1",
                                 "64:ff9b:1::1",
                                 "::ffff:127.0.0.1",
                                 "::ffff:0.0.0.0",
                                 "::ffff:10.1.2.3",
                                 "::ffff:169.254.169.254",
                                 "::127.0.0.1",
                                 "64:ff9b::127.0.0.1",
                                 "64:ff9b::a9fe:a9fe",
                                 "2002:7f00:1::",
                                 "2002:a00:1::1"}) {
    EXPECT_FALSE(allows(guard(), host)) << host;
  }
}

TEST(HttpAddresses, Public_addresses_are_allowed) {
  for (const auto* const host :
       {"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1",
        "192.167.255.255", "192.169.0.1", "198.17.255.255", "223.255.255.255", "9.255.255.255",
        "11.0.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1"}) {
    EXPECT_TRUE(allows(guard(), host)) << host;
  }
}

TEST(HttpAddresses, What_is_named_is_allowed_and_nothing_beside_it) {
  const auto checked = guard({"10.1.0.0/16", "127.0.0.1", "fd00::/8", "192.168.4.0/30"});

  for (const auto* const host : {"10.1.2.3", "127.0.0.1", "::ffff:127.0.0.1", "fd12::1",
                                 "192.168.4.3", "64:ff9b::10.1.2.3"}) {
    EXPECT_TRUE(allows(checked, host)) << host;
  }
  for (const auto* const host : {"10.2.0.1", "127.0.0.2", "fc12::1", "192.168.4.4", "::1"}) {
    EXPECT_FALSE(allows(checked, host)) << host;
  }
}

TEST(HttpAddresses, What_is_no_range_is_refused) {
  for (const std::string text : {"", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10",
                                 "::1/129", "10.0.0.0/8x", "10.0.0.0/8/8"}) {
    const auto made = AddressGuard::make(std::vector{text});
    ASSERT_FALSE(made.ok()) << text;
    EXPECT_THAT(made.error().message, HasSubstr("'" + text + "'"));
  }
}

StatusTable table(const std::vector<std::string>& changes = {}) {
  return StatusTable::make(changes).value();
}

TEST(HttpStatuses, Every_status_has_its_outcome) {
  const auto usual = table();
  const auto kind = [&](int status) { return std::string(to_string(usual.kind_of(status))); };

  for (const int status : {200, 201, 202, 204, 299})
    EXPECT_EQ(kind(status), "confirmed") << status;
  for (const int status : {300, 301, 302, 307, 308, 399, 401, 403, 404, 405, 409, 425, 499})
    EXPECT_EQ(kind(status), "refused") << status;
  for (const int status : {400, 413, 415, 422, 431})
    EXPECT_EQ(kind(status), "rejected") << status;
  for (const int status : {408, 500, 501, 502, 503, 504, 599, 0, 100, 199, 600, 999})
    EXPECT_EQ(kind(status), "unknown") << status;
  EXPECT_EQ(kind(410), "gone");
  EXPECT_EQ(kind(429), "throttled");
}

TEST(HttpStatuses, A_route_changes_them_one_by_one_or_by_the_hundred) {
  const auto changed = table({"4xx=rejected", "404=refused", "503=unavailable", "410=refused"});

  EXPECT_EQ(to_string(changed.kind_of(401)), "rejected");
  EXPECT_EQ(to_string(changed.kind_of(429)), "rejected");
  EXPECT_EQ(to_string(changed.kind_of(404)), "refused");
  EXPECT_EQ(to_string(changed.kind_of(410)), "refused");
  EXPECT_EQ(to_string(changed.kind_of(503)), "unavailable");
  EXPECT_EQ(to_string(changed.kind_of(500)), "unknown");
}

TEST(HttpStatuses, What_cannot_be_read_is_refused) {
  for (const std::string text :
       {"", "404", "404=", "404=never", "=rejected", "4x4=rejected", "100=confirmed",
        "600=confirmed", "40=rejected", "404 =rejected"}) {
    EXPECT_FALSE(StatusTable::make(std::vector{text}).ok()) << text;
  }
}

// The same moment in each form: Sun, 06 Nov 1994 08:49:37 GMT.
constexpr Timestamp moment{seconds(784'111'777)};

Answer answer(const std::vector<std::string>& lines) {
  Answer made;
  for (const auto& line : lines)
    EXPECT_TRUE(made.take_header(line + "\r\n"));
  return made;
}

std::optional<milliseconds> pause(const std::string& retry_after, const std::string& date = "",
                                  Timestamp now = moment) {
  std::vector<std::string> lines{"HTTP/1.1 429 Slow", "Retry-After: " + retry_after};
  if (!date.empty()) lines.push_back("DATE: " + date);
  return asked_pause(answer(lines), now, std::chrono::hours(24));
}

TEST(HttpAnswer, F105_and_WT_08_seconds_are_taken_and_clamped) {
  EXPECT_EQ(pause("0"), milliseconds(0));
  EXPECT_EQ(pause("1"), milliseconds(1'000));
  EXPECT_EQ(pause(" 120 "), milliseconds(120'000));
  EXPECT_EQ(pause("86400"), milliseconds(86'400'000));
  EXPECT_EQ(pause("999999999"), milliseconds(86'400'000));
  for (const auto* const text :
       {"", "-1", "1.5", "soon", "1e3", "+5", "99999999999999999999", "5s"}) {
    EXPECT_EQ(pause(text), std::nullopt) << text;
  }
}

TEST(HttpAnswer, WT_09_dates_count_from_the_answers_own_clock) {
  constexpr auto wrong = moment + std::chrono::minutes(10);
  for (const auto* const in_a_minute :
       {"Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT",
        "Sun Nov  6 08:50:37 1994"}) {
    EXPECT_EQ(pause(in_a_minute), milliseconds(60'000)) << in_a_minute;
    EXPECT_EQ(pause(in_a_minute, "Sun, 06 Nov 1994 08:49:37 GMT", wrong), milliseconds(60'000))
        << in_a_minute;
    EXPECT_EQ(pause(in_a_minute, "", wrong), milliseconds(0)) << "has passed by our clock";
    EXPECT_EQ(pause(in_a_minute, "nonsense"), milliseconds(60'000));
  }
  EXPECT_EQ(pause("Sun, 06 Nov 1994 08:00:00 GMT"), milliseconds(0));
  EXPECT_EQ(pause("Sat, 06 Nov 2004 08:00:00 GMT"), std::chrono::hours(24));
  EXPECT_EQ(pause("Sun, 06 Nov 1994 08:50:37 CET"), std::nullopt);
}

TEST(HttpAnswer, Two_that_contradict_each_other_do_not_count_and_interim_ones_neither) {
  EXPECT_EQ(asked_pause(answer({"HTTP/1.1 429 Slow", "Retry-After: 1", "Retry-After: 9"}), moment,
                        std::chrono::hours(1)),
            std::nullopt);
  EXPECT_EQ(asked_pause(answer({"HTTP/1.1 103 Early", "Retry-After: 9", "", "HTTP/1.1 429 Slow"}),
                        moment, std::chrono::hours(1)),
            std::nullopt);
}

TEST(HttpAnswer, F108_headers_and_bodies_have_a_bound) {
  Answer endless;
  const std::string line = "X: " + std::string(1'000, 'x') + "\r\n";
  int taken = 0;
  while (endless.take_header(line))
    ++taken;
  EXPECT_LE(static_cast<std::size_t>(taken) * line.size(), Answer::most_header_bytes);
  EXPECT_TRUE(endless.take_body(Answer::most_body_bytes));
  EXPECT_FALSE(endless.take_body(1));
}

TEST(HttpAnswer, A_status_and_a_pause_become_an_outcome) {
  const auto of = [](int status, std::optional<milliseconds> asked = {}) {
    return judge_status(status, asked, table(), "example.com");
  };

  EXPECT_EQ(of(204), Outcome::confirmed());
  EXPECT_EQ(of(302).code, "redirect_refused");
  EXPECT_EQ(of(404).code, "http_404");
  EXPECT_THAT(of(404).detail, HasSubstr("example.com answered 404"));
  EXPECT_EQ(to_string(of(410).kind), "gone");
  EXPECT_EQ(of(429, milliseconds(7)).after, milliseconds(7));
  EXPECT_EQ(of(429).after, milliseconds(5'000)) << "not at once";
  EXPECT_EQ(to_string(of(503, milliseconds(7)).kind), "throttled");
  EXPECT_EQ(to_string(of(503).kind), "unknown");
  EXPECT_TRUE(of(503).answered);
  EXPECT_EQ(to_string(of(500, milliseconds(7)).kind), "unknown");
}

TEST(HttpErrors, The_phase_decides_whether_it_may_have_arrived) {
  for (const auto& row : error_rows()) {
    EXPECT_EQ(to_string(fault_outcome(row.native_code, false, "h").kind), "unavailable");
    EXPECT_EQ(to_string(fault_outcome(row.native_code, true, "h").kind), "unknown");
    EXPECT_THAT(std::string(row.sentence), ::testing::EndsWith("."));
  }
  EXPECT_TRUE(fault_outcome(CURLE_RECV_ERROR, true, "h").connection_lost);
  EXPECT_EQ(fault_outcome(CURLE_OPERATION_TIMEDOUT, true, "h").code, "timeout");
  EXPECT_FALSE(fault_outcome(CURLE_OPERATION_TIMEDOUT, true, "h").connection_lost);
  EXPECT_TRUE(fault_outcome(CURLE_WEIRD_SERVER_REPLY, true, "h").answered);
  EXPECT_EQ(to_string(fault_outcome(CURLE_LDAP_CANNOT_BIND, true, "h").kind), "unknown");
}

Event event() {
  Event made;
  made.seq = Seq(7);
  made.id = EventId(Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value());
  made.type = "order.placed";
  made.content_type = "application/json";
  made.payload = "{}";
  return made;
}

TEST(HttpMessage, An_event_is_told_by_headers) {
  auto told = event();
  told.aggregate = Aggregate{"order", "\xd0\x81/1"};
  told.headers = {{"traceparent", "00-ab-cd-01"}, {"empty", ""}};

  const auto lines = header_lines(told, {{"Authorization: Bearer x"}, true}).value();

  EXPECT_THAT(lines,
              ElementsAre("Authorization: Bearer x", "Expect:", "Content-Type: application/json",
                          "postrider-type: order.placed",
                          "Idempotency-Key: 01890a5d-ac96-774b-bcce-b302099a8057", "empty;",
                          "postrider-aggregate-id: %D0%81/1", "postrider-aggregate-type: order",
                          "postrider-seq: 7", "traceparent: 00-ab-cd-01"));
}

TEST(HttpMessage, An_event_can_be_one_of_CloudEvents_in_binary_mode) {
  auto told = event();
  told.aggregate = Aggregate{"order", "a \"1\""};
  told.created_at = Timestamp(seconds(784'111'777));
  told.headers = {{"ce-source", "forged"}};

  const auto lines = header_lines(told, {{}, false, "https://shop.example/50%"}).value();

  for (const auto* const expected :
       {"ce-specversion: 1.0", "ce-id: 01890a5d-ac96-774b-bcce-b302099a8057",
        "ce-source: https://shop.example/50%25", "ce-type: order.placed",
        "ce-sequence: 0000000000000000007", "ce-subject: order/a%20%221%22",
        "ce-partitionkey: order/a%20%221%22", "postrider-header-ce-source: forged",
        "Content-Type: application/json"}) {
    EXPECT_THAT(lines, Contains(expected));
  }
  EXPECT_THAT(lines, Contains(::testing::StartsWith("ce-time: 1994-11-06T08:49:37")));
}

TEST(HttpMessage, F118_nothing_of_an_event_can_end_a_line_or_speak_for_the_sender) {
  auto hostile = event();
  hostile.headers = {{"a\r\nX-Evil", "1"},
                     {"b", "2\r\nX-Evil: 2"},
                     {"Authorization", "Bearer canary"},
                     {"webhook-signature", "v1,forged"},
                     {"Content-Length", "0"},
                     {"postrider-seq", "99"},
                     {"percent", "50%41"}};

  const auto lines = header_lines(hostile, {}).value();

  for (const auto& line : lines) {
    EXPECT_EQ(line.find_first_of("\r\n"), std::string::npos) << line;
    EXPECT_FALSE(line.starts_with("Authorization") || line.starts_with("webhook-") ||
                 line.starts_with("Content-Length"))
        << line;
  }
  EXPECT_THAT(lines, Contains("a%0D%0AX-Evil: 1"));
  EXPECT_THAT(lines, Contains("b: 2%0D%0AX-Evil: 2"));
  EXPECT_THAT(lines, Contains("postrider-header-Authorization: Bearer canary"));
  EXPECT_THAT(lines, Contains("postrider-seq: 7"));
  EXPECT_THAT(lines, Contains("percent: 50%2541"));
}

TEST(HttpMessage, Headers_that_no_server_takes_are_rejected_before_they_leave) {
  auto heavy = event();
  for (int i = 0; i < 9; ++i)
    heavy.headers["h" + std::to_string(i)] = std::string(8'000, 'x');

  const auto lines = header_lines(heavy, {});

  ASSERT_FALSE(lines.ok());
  EXPECT_EQ(lines.error().code, ErrorCode::limit_exceeded);
  EXPECT_EQ(lines.error().disposition, Disposition::reject);
}

TEST(HttpMessage, A_signature_belongs_to_an_attempt_and_the_id_to_the_event) {
  const auto keys = WebhookKeys::parse(std::vector<std::string>{
                                           "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="})
                        .value();

  const auto first = signature_lines(event(), keys, seconds(1'700'000'000));
  const auto second = signature_lines(event(), keys, seconds(1'700'000'001));

  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0], second[0]);
  EXPECT_EQ(first[1], "webhook-timestamp: 1700000000");
  EXPECT_NE(first[1], second[1]);
  EXPECT_NE(first[2], second[2]);
  EXPECT_EQ(signature_lines(event(), WebhookKeys(), seconds(1)).size(), 2U);
}

TEST(HttpOptions, All_faults_are_told_at_once_and_none_holds_a_secret) {
  HttpOptions options;
  options.url = "http://127.0.0.1/hook?token=canary";
  options.secrets = {"canary"};
  options.headers = {"canary", "Host: x", "X-Key: \rcanary"};
  options.statuses = {"404=never"};
  options.allow = {"everything"};
  options.source = "canary";
  options.proxy = "socks5://canary";
  options.certificate_file = "cert.pem";
  options.connections = 0;
  options.window = 0;
  options.rate = 10'001;
  options.connect_timeout = options.most_retry_after = milliseconds(0);
  options.gone_after = milliseconds(-1);

  const auto faults = validate(options);

  EXPECT_THAT(faults,
              ElementsAre(HasSubstr("plain_http"), HasSubstr("'everything'"), HasSubstr("number 1"),
                          HasSubstr("404=never"), HasSubstr("Name: value"), HasSubstr("Host"),
                          HasSubstr("X-Key"), HasSubstr("cloudevents"), HasSubstr("proxy"),
                          HasSubstr("belong together"), HasSubstr("no TLS"),
                          HasSubstr("window is 0"), HasSubstr("connections is 0"),
                          HasSubstr("rate is 10001"), HasSubstr("connect_timeout is 0"),
                          HasSubstr("most_retry_after is 0"), HasSubstr("gone_after is -1")));
  for (const auto& fault : faults)
    EXPECT_THAT(fault, Not(HasSubstr("canary")));
}

TEST(HttpOptions, An_address_that_is_not_public_is_refused_before_anything_is_connected) {
  HttpOptions options;
  for (const auto* const url :
       {"https://127.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://[::1]/",
        "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest"}) {
    options.url = url;
    EXPECT_THAT(validate(options), ElementsAre(HasSubstr("no public address"))) << url;
  }
  options.allow = {"169.254.169.254"};
  EXPECT_THAT(validate(options), IsEmpty());
}

TEST(HttpTraits, The_page_for_users_tells_them_as_they_are) {
  HttpOptions options;
  options.url = "https://hook.example/";
  const auto traits = make_http_publisher(options)->traits();
  std::ifstream file(POSTRIDER_TEST_SOURCE_DIR "/docs/brokers/http.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const auto yes_or_no = [](bool value) { return std::string(value ? "yes" : "no"); };
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"name", "`" + std::string(traits.name) + "`"},
      {"window", std::to_string(traits.window)},
      {"most_payload_bytes", std::to_string(traits.most_payload_bytes)},
      {"confirms", yes_or_no(traits.confirms)},
      {"durable", yes_or_no(traits.durable)},
      {"detects_unroutable", yes_or_no(traits.detects_unroutable)},
      {"keeps_headers", yes_or_no(traits.keeps_headers)},
      {"one_address", yes_or_no(traits.one_address)},
  };
  for (const auto& [name, value] : rows)
    EXPECT_THAT(page, HasSubstr("\n| `" + name + "` | " + value + " |\n"));
}

TEST(HttpOptions, A_faulty_publisher_says_so_at_submit_and_takes_nothing) {
  const auto publisher = make_http_publisher({});
  const std::vector<Message> messages{
      {AttemptId(1), std::make_shared<const Event>(event()), DispatchId(), milliseconds(1'000)}};

  const auto submitted = publisher->submit(messages, Deadline::after(seconds(1)));

  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code, ErrorCode::config_invalid);
  EXPECT_EQ(submitted.error().disposition, Disposition::stop);
  EXPECT_TRUE(publisher->poll(Deadline::after(milliseconds(0))).empty());
  EXPECT_TRUE(publisher->close(Deadline::after(milliseconds(0))).empty());
}

TEST(HttpPace, Begins_are_spread_evenly) {
  Pace pace(10);
  const Instant start(seconds(100));

  EXPECT_EQ(pace.wait(start), milliseconds(0));
  pace.on_begin(start);
  EXPECT_EQ(pace.wait(start), milliseconds(100));
  EXPECT_EQ(pace.wait(start + milliseconds(60)), milliseconds(40));
  EXPECT_EQ(pace.wait(start + seconds(5)), milliseconds(0));
  pace.on_begin(start + seconds(5));
  EXPECT_EQ(pace.wait(start + seconds(5)), milliseconds(100)) << "a pause is no reason for a burst";
  Pace none(0);
  none.on_begin(start);
  EXPECT_EQ(none.wait(start), milliseconds(0));
}

}  // namespace
}  // namespace postrider::http

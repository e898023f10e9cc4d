// Signatures of webhooks, from both ends.

#include <gmock/gmock.h>

#include <postrider/webhook.hpp>

#include "base/base64.hpp"
#include "base/digest.hpp"

namespace postrider {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string old_secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const std::string new_secret = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const std::string old_signature = "v1,rGDOXlVNrGyCHb9KLyQUP+Bz2jL98kTcLJRSknpbn7s=";
const std::string new_signature = "v1,IJ0DRUsVYsLrGe3j883GoFBaJsyd/OpLNtmJheNZvAs=";
const std::string body = R"({"type":"order.placed","data":{"orderId":1,"totalCents":2500}})";
constexpr seconds sent{1'700'000'000};

WebhookKeys keys(const std::vector<std::string>& secrets) {
  return WebhookKeys::parse(secrets).value();
}

bool verifies(const WebhookKeys& receiver, const std::string& signature,
              std::string_view bytes = body, const std::string& timestamp = "1700000000",
              seconds now = sent, const std::string& id = "msg_ph_1") {
  return receiver.verify({id, timestamp, signature}, bytes, Timestamp(now)).ok();
}

TEST(Webhook, The_computed_vector_is_signed_by_one_key_and_by_the_other) {
  EXPECT_EQ(keys({old_secret}).sign("msg_ph_1", sent, body), old_signature);
  EXPECT_EQ(keys({new_secret}).sign("msg_ph_1", sent, body), new_signature);
  EXPECT_EQ(keys({}).sign("msg_ph_1", sent, body), "");
}

TEST(Webhook, WT_11_during_a_rotation_receivers_with_either_key_verify) {
  const auto signature = keys({new_secret, old_secret}).sign("msg_ph_1", sent, body);

  EXPECT_EQ(signature, new_signature + " " + old_signature);
  EXPECT_TRUE(verifies(keys({old_secret}), signature));
  EXPECT_TRUE(verifies(keys({new_secret}), signature));
  EXPECT_TRUE(verifies(keys({old_secret, new_secret}), old_signature));
}

TEST(Webhook, WT_18_a_key_that_was_removed_signs_nothing_and_is_trusted_no_more) {
  const auto signature = keys({new_secret}).sign("msg_ph_1", sent, body);

  EXPECT_THAT(signature, Not(HasSubstr(old_signature)));
  EXPECT_FALSE(verifies(keys({old_secret}), signature));
  EXPECT_FALSE(verifies(keys({new_secret}), old_signature));
}

TEST(Webhook, WT_12_a_body_that_was_parsed_and_written_again_does_not_verify) {
  EXPECT_FALSE(verifies(keys({old_secret}), old_signature,
                        R"({"data": {"orderId": 1, "totalCents": 2500}, "type": "order.placed"})"));
}

TEST(Webhook, What_was_changed_on_the_way_does_not_verify) {
  const auto receiver = keys({old_secret});

  EXPECT_TRUE(verifies(receiver, old_signature));
  EXPECT_FALSE(verifies(receiver, old_signature, body + " "));
  EXPECT_FALSE(verifies(receiver, old_signature, body, "1700000001"));
  EXPECT_FALSE(verifies(receiver, old_signature, body, "1700000000", sent, "msg_ph_2"));
}

TEST(Webhook, Timestamps_count_within_the_tolerance_in_both_directions) {
  const auto receiver = keys({old_secret});
  const auto at = [&](seconds now) {
    return verifies(receiver, old_signature, body, "1700000000", now);
  };

  EXPECT_TRUE(at(sent + seconds(300)));
  EXPECT_TRUE(at(sent - seconds(300)));
  EXPECT_FALSE(at(sent + seconds(301)));
  EXPECT_FALSE(at(sent - seconds(301)));
  EXPECT_TRUE(receiver
                  .verify({"msg_ph_1", "1700000000", old_signature}, body,
                          Timestamp(sent + seconds(3000)), seconds(3600))
                  .ok());
}

TEST(Webhook, Garbage_does_not_verify) {
  const auto receiver = keys({old_secret});

  for (const auto* const signature :
       {"", " ", "v1", "v1,", "v1,rGDOXlVNrGyCHb9KLyQUP", "v1a,rGDO", "v2,abc", ",,,"}) {
    EXPECT_FALSE(verifies(receiver, signature)) << signature;
  }
  for (const auto* const timestamp :
       {"", "-1", "1700000000.0", "1e9", "99999999999999999999", " 1"}) {
    EXPECT_FALSE(verifies(receiver, old_signature, body, timestamp)) << timestamp;
  }
  EXPECT_TRUE(verifies(receiver, "v1a,ignored  " + old_signature + " v9,x"));
  EXPECT_FALSE(verifies(keys({}), old_signature));
}

TEST(Webhook, Refusals_name_neither_secret_nor_signature) {
  const auto refused =
      keys({new_secret}).verify({"m", "1700000000", old_signature}, body, Timestamp(sent));

  EXPECT_EQ(refused.error().code, ErrorCode::auth_failed);
  EXPECT_THAT(refused.error().message, Not(HasSubstr(old_signature)));
}

TEST(Webhook, Secrets_that_cannot_be_keys_are_refused_by_their_number) {
  const auto whsec = [](std::size_t bytes) {
    return "whsec_" + encode_base64(std::string(bytes, 'k'));
  };
  for (const auto& secret : std::vector<std::string>{
           "", "canary", "whsec_", "whsec_canary!", "whsk_" + old_secret.substr(6), whsec(23),
           whsec(65), old_secret.substr(0, old_secret.size() - 1)}) {
    const auto parsed = WebhookKeys::parse(std::vector{old_secret, secret});
    ASSERT_FALSE(parsed.ok()) << secret;
    EXPECT_THAT(parsed.error().message, HasSubstr("number 2"));
    EXPECT_THAT(parsed.error().message, Not(HasSubstr("canary")));
  }
  EXPECT_TRUE(WebhookKeys::parse(std::vector{whsec(24), whsec(64)}).ok());
  EXPECT_EQ(WebhookKeys::parse(std::vector<std::string>(9, old_secret)).error().code,
            ErrorCode::limit_exceeded);
}

TEST(Base64, is_read_back_and_has_one_spelling) {
  for (const std::string bytes : {"", "a", "ab", "abc", "\xff\xfe\x01"}) {
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
  for (const auto* const text :
       {"a", "ab", "ab=", "ab==c", "ab===", "YR==", "YQ=", "Y Q=", "YQ==\n"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

// Source: RFC 4231, test cases 2 and 6.
TEST(HmacSha256, has_the_values_of_the_standard) {
  const auto hex = [](const auto& digest) {
    std::string text;
    for (const auto byte : digest) {
      text.push_back("0123456789abcdef"[byte >> 4U]);
      text.push_back("0123456789abcdef"[byte & 15U]);
    }
    return text;
  };
  EXPECT_EQ(hex(hmac_sha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            {"Test Using Larger Than Block-Size Key - Hash Key First"})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace postrider

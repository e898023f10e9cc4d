// Typed events: structs to bytes and back, and what is refused on the way.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <postrider/typed_event.hpp>

namespace shop {

// [typed-event]
struct OrderPlaced {
  std::int64_t orderId = 0;
  std::int64_t totalCents = 0;
};
POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, totalCents)
// [typed-event]

enum class Color { red, green };
POSTRIDER_ENUM(Color, red, green)
enum class Size : std::uint8_t { small = 1, large = 200 };

struct Line {
  std::string name;
  std::optional<double> price;
  friend bool operator==(const Line&, const Line&) = default;
};
POSTRIDER_STRUCT(Line, name, price)

struct Everything {
  std::string text;
  std::int8_t tiny = 0;
  std::uint8_t byte = 0;
  std::int64_t least = 0;
  std::uint64_t most = 0;
  float single = 0;
  double twice = 0;
  bool yes = false;
  std::optional<std::int32_t> none;
  std::optional<std::int32_t> some;
  Color color = Color::red;
  Size size = Size::small;
  postrider::Timestamp at;
  Line line;
  std::vector<Line> lines;
  std::vector<bool> flags;
  std::map<std::string, std::vector<std::optional<int>>> counts;
  static inline int instances = 0;
  friend bool operator==(const Everything&, const Everything&) = default;
};
POSTRIDER_EVENT(Everything, "everything", text, tiny, byte, least, most, single, twice, yes, none,
                some, color, size, at, line, lines, flags, counts)

struct Ping {};
POSTRIDER_EVENT(Ping, "ping")

}  // namespace shop

namespace postrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

shop::Everything everything() {
  shop::Everything event;
  event.text = "\"\\\n\r\t\x01 \xd0\xbf\x7f";
  event.tiny = -128;
  event.byte = 255;
  event.least = std::numeric_limits<std::int64_t>::min();
  event.most = std::numeric_limits<std::uint64_t>::max();
  event.single = 0.1F;
  event.twice = 1e300;
  event.yes = true;
  event.some = -1;
  event.color = shop::Color::green;
  event.size = shop::Size::large;
  event.at = Timestamp(std::chrono::microseconds(1'800'000'000'123'456));
  event.line = {"a", 2.0};
  event.lines = {{"b", std::nullopt}, {"c", -0.5}};
  event.flags = {true, false};
  event.counts = {{"", {}}, {"x", {1, std::nullopt}}};
  return event;
}

template <class T>
std::string payload_of(const T& event) {
  const auto made = make_event(event);
  EXPECT_TRUE(made.ok()) << describe(made.error());
  return made.ok() ? made->payload : "";
}

template <class T>
std::string refusal_of(const Result<T>& result, ErrorCode code = ErrorCode::invalid_argument) {
  if (result.ok()) return "it was accepted";
  EXPECT_EQ(result.error().code, code);
  return result.error().message;
}

std::string read_refusal(std::string_view payload) {
  return refusal_of(decode_event<shop::OrderPlaced>("order.placed", payload));
}

TEST(TypedEvent, R027_OrderPlaced_is_exactly_this) {
  const auto event = make_event(shop::OrderPlaced{1, 2500}, Aggregate{"order", "1"});
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->payload, R"({"orderId":1,"totalCents":2500})");
  EXPECT_EQ(event->type, "order.placed");
  EXPECT_EQ(event->content_type, "application/json");
  EXPECT_EQ(event->aggregate, (Aggregate{"order", "1"}));
}

TEST(TypedEvent, R044_every_kind_of_field_is_exactly_this) {
  EXPECT_EQ(payload_of(everything()),
            "{\"text\":\"\\\"\\\\\\n\\r\\t\\u0001 \xd0\xbf\x7f\",\"tiny\":-128,\"byte\":255,"
            "\"least\":-9223372036854775808,\"most\":18446744073709551615,\"single\":0.1,"
            "\"twice\":1e+300,\"yes\":true,\"none\":null,\"some\":-1,\"color\":\"green\","
            "\"size\":200,\"at\":\"2027-01-15T08:00:00.123456Z\","
            "\"line\":{\"name\":\"a\",\"price\":2.0},"
            "\"lines\":[{\"name\":\"b\",\"price\":null},{\"name\":\"c\",\"price\":-0.5}],"
            "\"flags\":[true,false],\"counts\":{\"\":[],\"x\":[1,null]}}");
  EXPECT_EQ(payload_of(shop::Ping{}), "{}");
}

TEST(TypedEvent, R041_what_was_written_is_read_back) {
  const auto read = decode_event<shop::Everything>("everything", payload_of(everything()));
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_TRUE(*read == everything());
  EXPECT_TRUE(decode_event<shop::Ping>("ping", "{}").ok());
}

TEST(TypedEvent, R042_another_type_is_an_error_with_both_names) {
  const auto message = refusal_of(decode_event<shop::OrderPlaced>("order.paid", "{}"));
  EXPECT_THAT(message, HasSubstr("order.paid"));
  EXPECT_THAT(message, HasSubstr("order.placed"));
}

TEST(TypedEvent, R047_values_without_a_form_are_refused_with_their_path) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    auto event = everything();
    event.lines[1].price = bad;
    EXPECT_THAT(refusal_of(make_event(event)), StartsWith("lines[1].price is NaN"));
  }
  auto event = everything();
  event.line.name = "a\xff";
  EXPECT_THAT(refusal_of(make_event(event)), StartsWith("line.name is not valid UTF-8 at byte 1"));
  event = everything();
  event.counts["\xff"] = {};
  EXPECT_THAT(refusal_of(make_event(event)), HasSubstr("UTF-8"));
  event = everything();
  event.color = static_cast<shop::Color>(7);
  EXPECT_THAT(refusal_of(make_event(event)), StartsWith("color holds a number"));
}

TEST(TypedEvent, F117_integers_are_exact_or_refused) {
  const auto read = decode_event<shop::OrderPlaced>(
      "order.placed", R"({"orderId":9007199254740993,"totalCents":-9223372036854775808})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->orderId, 9007199254740993);
  for (const auto* bad : {"9223372036854775808", "18446744073709551616", "-9223372036854775809"}) {
    EXPECT_THAT(read_refusal(std::string(R"({"orderId":)") + bad + R"(,"totalCents":1})"),
                StartsWith("orderId is "))
        << bad;
  }
  auto text = payload_of(everything());
  text.replace(text.find("\"byte\":255"), 10, "\"byte\":256");
  EXPECT_THAT(refusal_of(decode_event<shop::Everything>("everything", text)),
              StartsWith("byte is out of the range"));
}

TEST(TypedEvent, What_does_not_fit_the_type_is_refused_with_its_path) {
  const auto with = [](std::string_view value) {
    return R"({"totalCents":1,"orderId":)" + std::string(value) + "}";
  };
  for (const auto* wrong : {"1.0", "1e2", "\"1\"", "true", "null", "[1]", "{}"}) {
    EXPECT_THAT(read_refusal(with(wrong)), StartsWith("orderId is not an integer")) << wrong;
  }
  EXPECT_THAT(read_refusal(R"({"orderId":1})"), StartsWith("totalCents is missing"));
  EXPECT_THAT(read_refusal("[]"), StartsWith("the event is not an object"));

  const auto change = [](std::string_view from, std::string_view to) {
    auto text = payload_of(everything());
    text.replace(text.find(from), from.size(), to);
    return refusal_of(decode_event<shop::Everything>("everything", text));
  };
  EXPECT_THAT(change("\"green\"", "\"blue\""), StartsWith("color holds a name"));
  EXPECT_THAT(change("2027-01-15T", "2027-02-30T"), StartsWith("at is not a time"));
  EXPECT_THAT(change("08:00:00.123456Z", "08:00:00.1234567Z"), StartsWith("at is not a time"));
  EXPECT_THAT(change("08:00:00.123456Z", "24:00:00Z"), StartsWith("at is not a time"));
  EXPECT_THAT(change("08:00:00.123456Z", "08:00:00+01:00"), StartsWith("at is not a time"));
  EXPECT_THAT(change("-0.5", "\"x\""), StartsWith("lines[1].price is not a number"));
  EXPECT_THAT(change("\"single\":0.1", "\"single\":1e39"), StartsWith("single is out of"));
  EXPECT_THAT(change("[true,false]", "[true,0]"), StartsWith("flags[1] is not true or false"));
  EXPECT_THAT(change("[1,null]", "{}"), StartsWith("counts.x is not a list"));
  EXPECT_THAT(change("\"size\":200", "\"size\":-1"), StartsWith("size is out of"));
}

TEST(TypedEvent, Fields_that_the_receiver_does_not_know_are_passed_over) {
  const auto read = decode_event<shop::OrderPlaced>("order.placed",
                                                    R"( {"new":[{}],"totalCents":2,"orderId":1} )");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->totalCents, 2);
}

TEST(TypedEvent, Times_may_have_fewer_digits) {
  for (const auto& [text, microseconds] : {std::pair("1970-01-01T00:00:01Z", 1'000'000),
                                           std::pair("1970-01-01T00:00:00.5Z", 500'000)}) {
    const auto time = timestamp_from({std::string(text)});
    ASSERT_TRUE(time.ok()) << text;
    EXPECT_EQ(time->time_since_epoch().count(), microseconds);
  }
}

TEST(JsonCodec, F116_hostile_text_is_refused_and_not_repeated) {
  const auto& codec = json_codec();
  for (const auto* bad : {"", "{", "secret", "{\"a\":1}x", "[1,]", "{\"a\":NaN}", "1e999",
                          "\"\xff\"", "{\"a\" 1}", "'a'", "[1 2]"}) {
    const auto message = refusal_of(codec.decode(bad));
    EXPECT_THAT(message, HasSubstr("not valid JSON at byte")) << bad;
    EXPECT_THAT(message, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(refusal_of(codec.decode(R"({"a":1,"b":{"c":1,"c":2}})")), HasSubstr("twice"));
}

TEST(JsonCodec, F116_depth_has_a_limit) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(json_codec().decode(nested(most_json_depth)).ok());
  for (const std::size_t levels : {most_json_depth + 1, std::size_t{1'000'000}}) {
    EXPECT_THAT(refusal_of(json_codec().decode(nested(levels)), ErrorCode::limit_exceeded),
                HasSubstr("64"));
  }
}

/// Bytes that are no JSON, as another codec would make them.
class LineCodec final : public Codec {
 public:
  std::string_view content_type() const override { return "text/x-lines"; }
  Result<std::string> encode(const FieldValue& value) const override {
    std::string text;
    for (const auto& [name, member] : std::get<FieldMembers>(value.content))
      text += name + '\0' + std::to_string(std::get<std::int64_t>(member.content)) + '\n';
    return text;
  }
  Result<FieldValue> decode(std::string_view bytes) const override {
    FieldMembers members;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto middle = bytes.find('\0', at);
      const auto end = bytes.find('\n', at);
      const std::string number(bytes.substr(middle + 1, end - middle - 1));
      members.push_back(
          {std::string(bytes.substr(at, middle - at)), {std::int64_t{std::stoll(number)}}});
      at = end + 1;
    }
    return FieldValue{std::move(members)};
  }
};

TEST(Codec, R040_R043_the_application_brings_its_own) {
  const LineCodec lines;
  const auto event = make_event(shop::OrderPlaced{1, 2500}, std::nullopt, lines);
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->content_type, "text/x-lines");
  const auto read = decode_event<shop::OrderPlaced>(event->type, event->payload, lines);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->totalCents, 2500);
}

TEST(FieldDenyList, R048_a_denied_name_is_refused_at_any_depth) {
  const FieldDenyList careful(json_codec(), {"PRICE", "x"});
  EXPECT_THAT(refusal_of(make_event(everything(), std::nullopt, careful)),
              StartsWith("line.price must not leave"));
  auto event = everything();
  const FieldDenyList keys(json_codec(), {"X"});
  EXPECT_THAT(refusal_of(make_event(event, std::nullopt, keys)), StartsWith("counts.x must not"));
  event.counts.clear();
  EXPECT_TRUE(make_event(event, std::nullopt, keys).ok());
  const auto inside =
      FieldDenyList(json_codec(), {"b"}).encode({FieldItems{{FieldMembers{{"a", {}}, {"b", {}}}}}});
  EXPECT_THAT(refusal_of(inside), StartsWith("[0].b must not leave"));
  EXPECT_TRUE(careful.decode(R"({"price":1})").ok());
}

}  // namespace
}  // namespace postrider

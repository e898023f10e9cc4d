#include <postrider/ids.hpp>

#include <optional>

#include <postrider/clock.hpp>

namespace postrider {
namespace {

constexpr std::array<std::size_t, 4> dash_before_byte = {4, 6, 8, 10};

bool is_dash_before(std::size_t byte) {
  for (const auto position : dash_before_byte) {
    if (position == byte) return true;
  }
  return false;
}

std::optional<std::uint8_t> nibble(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<std::uint8_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<std::uint8_t>(digit - 'a' + 10);
  if (digit >= 'A' && digit <= 'F') return static_cast<std::uint8_t>(digit - 'A' + 10);
  return std::nullopt;
}

Error not_a_uuid() {
  return {ErrorCode::invalid_argument, Disposition::reject,
          "not a UUID. Write 36 characters such as 0190a5b2-7c3d-7e4f-8a6b-1c2d3e4f5a6b.", "ids",
          ""};
}

}  // namespace

Result<Uuid> Uuid::parse(std::string_view text) {
  if (text.size() != text_size) return not_a_uuid();
  std::array<std::uint8_t, 16> bytes{};
  std::size_t at = 0;
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    if (is_dash_before(byte) && text[at++] != '-') return not_a_uuid();
    const auto high = nibble(text[at]);
    const auto low = nibble(text[at + 1]);
    if (!high || !low) return not_a_uuid();
    bytes[byte] = static_cast<std::uint8_t>(*high << 4U | *low);
    at += 2;
  }
  return Uuid(bytes);
}

std::string Uuid::to_string() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(text_size);
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    if (is_dash_before(byte)) text += '-';
    text += digits[bytes_[byte] >> 4U];
    text += digits[bytes_[byte] & 0x0FU];
  }
  return text;
}

// RFC 9562, version 7: 48 bits of milliseconds, then a 12-bit counter that keeps one generator's
// ids ascending within a millisecond (its method 1), then 62 random bits.
Uuid IdGenerator::next() {
  constexpr std::uint16_t counter_end = 1U << 12U;
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_->wall().time_since_epoch());
  const auto now_ms = static_cast<std::uint64_t>(now.count());
  if (now_ms > last_ms_) {
    last_ms_ = now_ms;
    counter_ = static_cast<std::uint16_t>(random_->next() & 0x7FFU);  // room to count up
  } else if (++counter_ == counter_end) {
    ++last_ms_;  // borrows from the future instead of repeating or going back
    counter_ = 0;
  }

  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < 6; ++i) {
    bytes[i] = static_cast<std::uint8_t>(last_ms_ >> (40U - 8U * i));
  }
  bytes[6] = static_cast<std::uint8_t>(0x70U | counter_ >> 8U);
  bytes[7] = static_cast<std::uint8_t>(counter_);
  const std::uint64_t chance = random_->next();
  for (std::size_t i = 0; i < 8; ++i)
    bytes[8 + i] = static_cast<std::uint8_t>(chance >> (8U * i));
  bytes[8] = static_cast<std::uint8_t>(0x80U | (bytes[8] & 0x3FU));
  return Uuid(bytes);
}

}  // namespace postrider

std::size_t std::hash<postrider::Uuid>::operator()(const postrider::Uuid& uuid) const noexcept {
  std::size_t mixed = 0;
  for (std::size_t i = 8; i < 16; ++i)
    mixed = mixed << 8U | uuid.bytes()[i];
  std::size_t front = 0;
  for (std::size_t i = 0; i < 8; ++i)
    front = front << 8U | uuid.bytes()[i];
  return mixed ^ front * 0x9E3779B97F4A7C15U;
}

#include "base/utf8.hpp"

#include <cstdint>

namespace postrider {
namespace {

struct Sequence {
  std::size_t length = 0;  // 0: no character starts with this byte
  std::uint8_t second_least = 0x80;
  std::uint8_t second_most = 0xBF;
};

// The table of RFC 3629 section 4: only the second byte has bounds narrower than a continuation's.
Sequence sequence_of(std::uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xC2 && lead <= 0xDF) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  if (lead >= 0xF1 && lead <= 0xF3) return {4};
  return {};
}

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

bool is_control(std::uint8_t byte) {
  return byte < 0x20 || byte == 0x7F;
}

bool is_continuation(std::uint8_t byte) {
  return (byte & 0xC0U) == 0x80U;
}

std::size_t character_length(std::string_view text, std::size_t at) {
  const auto sequence = sequence_of(byte_at(text, at));
  if (sequence.length <= 1) return sequence.length;
  if (at + sequence.length > text.size()) return 0;
  const auto second = byte_at(text, at + 1);
  if (second < sequence.second_least || second > sequence.second_most) return 0;
  for (std::size_t i = 2; i < sequence.length; ++i) {
    if (!is_continuation(byte_at(text, at + i))) return 0;
  }
  return sequence.length;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::optional<std::size_t> first_control(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_control(byte_at(text, at))) return at;
  }
  return std::nullopt;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && is_continuation(byte_at(text, bytes)))
    --bytes;
  return text.substr(0, bytes);
}

std::string clean_text(std::string_view text, std::size_t bytes) {
  std::string cleaned;
  for (std::size_t at = 0; at < text.size();) {
    const auto length = character_length(text, at);
    const auto kept = length == 0                     ? std::string_view("?")
                      : is_control(byte_at(text, at)) ? std::string_view(" ")
                                                      : text.substr(at, length);
    if (cleaned.size() + kept.size() > bytes) break;
    cleaned += kept;
    at += length == 0 ? 1 : length;
  }
  return cleaned;
}

}  // namespace postrider

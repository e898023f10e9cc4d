#pragma once
/// \file
/// The seam between typed events and their bytes: `Codec`.
///
/// An application that wants another format than JSON hands its own codec to `make_event` and
/// `decode_event`; the outbox, the relay and every store know nothing of formats.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/field_value.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// Thread safety: all functions may be called from any thread.
class Codec {
 public:
  virtual ~Codec() = default;

  /// What stands in an event's `content_type`.
  [[nodiscard]] virtual std::string_view content_type() const = 0;
  /// Errors: `invalid_argument` with the path of a value that the format cannot hold. Nothing is
  /// changed silently.
  [[nodiscard]] virtual Result<std::string> encode(const FieldValue& value) const = 0;
  /// Errors: `invalid_argument` for bytes that are not of this format, `limit_exceeded` for more
  /// depth than the codec reads. Bytes are never repeated in a message.
  [[nodiscard]] virtual Result<FieldValue> decode(std::string_view bytes) const = 0;
};

/// JSON (RFC 8259), without spaces, members in the order of the type.
///
/// Integers keep all 64 bits. A floating-point number has the fewest digits that read back to the
/// same value, and always a point or an exponent. Refused: NaN, infinity, text that is not UTF-8;
/// on the way in also a name that occurs twice in an object, more than `most_json_depth` levels,
/// and numbers that no 64 bits hold where an integer is asked for.
/// Ownership: a process-wide constant without state.
[[nodiscard]] const Codec& json_codec() noexcept;

inline constexpr std::size_t most_json_depth = 64;

/// A codec over another one that refuses to write fields of certain names, at any depth and
/// whatever their case: "password", "card_number". For data that must not leave in events.
class FieldDenyList final : public Codec {
 public:
  /// Ownership: borrows `inner`, which must outlive it.
  FieldDenyList(const Codec& inner, std::vector<std::string> names);

  [[nodiscard]] std::string_view content_type() const override { return inner_->content_type(); }
  /// Errors: also `invalid_argument` with the path of the field.
  [[nodiscard]] Result<std::string> encode(const FieldValue& value) const override;
  [[nodiscard]] Result<FieldValue> decode(std::string_view bytes) const override {
    return inner_->decode(bytes);
  }

 private:
  const Codec* inner_;
  std::vector<std::string> names_;
};

}  // namespace postrider

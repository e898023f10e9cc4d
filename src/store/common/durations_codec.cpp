#include "store/common/durations_codec.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include <postrider/route.hpp>

namespace postrider::store {
namespace {

// An array of whole numbers is little enough to read without a JSON library, and this reader takes
// nothing else that JSON would allow.
class DurationsReader {
 public:
  explicit DurationsReader(std::string_view text) : rest_(text) {}

  std::optional<std::vector<milliseconds>> read() {
    std::vector<milliseconds> durations;
    if (!take('[')) return std::nullopt;
    if (!take(']')) {
      do {
        const auto value = number();
        if (!value || durations.size() == Route::most_retry_delays) return std::nullopt;
        durations.emplace_back(*value);
      } while (take(','));
      if (!take(']')) return std::nullopt;
    }
    skip_space();
    if (!rest_.empty()) return std::nullopt;
    return durations;
  }

 private:
  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  bool take(char expected) {
    skip_space();
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::int64_t> number() {
    skip_space();
    std::int64_t value = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), end, value);
    if (error != std::errc() || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    return value;
  }

  std::string_view rest_;
};

}  // namespace

std::string encode_durations(std::span<const milliseconds> durations) {
  std::string text = "[";
  for (const milliseconds duration : durations) {
    if (text.size() > 1) text += ',';
    text += std::to_string(duration.count());
  }
  return text += ']';
}

Result<std::vector<milliseconds>> decode_durations(std::string_view json) {
  auto durations = DurationsReader(json).read();
  if (!durations) {
    return Error{ErrorCode::invalid_argument, Disposition::reject,
                 "a list of delays is not a JSON array of at most " +
                     std::to_string(Route::most_retry_delays) +
                     " whole milliseconds. Repair the row.",
                 "durations", ""};
  }
  return *std::move(durations);
}

}  // namespace postrider::store

#include "values/range_check.hpp"

#include <fmt/format.h>

namespace postrider {

void check_duration(std::vector<std::string>& faults, std::string_view key, milliseconds value,
                    milliseconds least, milliseconds most) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("{} is {} ms. Give {} to {} ms.", key, value.count(), least.count(),
                               most.count()));
}

void check_count(std::vector<std::string>& faults, std::string_view key, std::size_t value,
                 std::size_t least, std::size_t most) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("{} is {}. Give {} to {}.", key, value, least, most));
}

void check_number(std::vector<std::string>& faults, std::string_view key, int value, int least,
                  int most) {
  if (value >= least && value <= most) return;
  faults.push_back(fmt::format("{} is {}. Give {} to {}.", key, value, least, most));
}

}  // namespace postrider

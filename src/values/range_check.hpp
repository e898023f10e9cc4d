#pragma once
/// \file
/// Faults of values that are outside of their bounds, one sentence each.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>

namespace postrider {

void check_duration(std::vector<std::string>& faults, std::string_view key, milliseconds value,
                    milliseconds least, milliseconds most);
void check_count(std::vector<std::string>& faults, std::string_view key, std::size_t value,
                 std::size_t least, std::size_t most);
void check_number(std::vector<std::string>& faults, std::string_view key, int value, int least,
                  int most);

}  // namespace postrider

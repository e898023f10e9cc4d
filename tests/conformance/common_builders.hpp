#pragma once
/// \file
/// What all suites are written with: patience, results, ids, payloads, names in failure messages.

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/clock.hpp>
#include <postrider/ids.hpp>
#include <postrider/result.hpp>

namespace postrider {

inline void PrintTo(const Uuid& uuid, std::ostream* out) {
  *out << uuid.to_string();
}

template <class T, class Tag>
void PrintTo(const Named<T, Tag>& named, std::ostream* out) {
  if constexpr (requires { *out << named.value(); }) {
    *out << named.value();
  } else {
    PrintTo(named.value(), out);
  }
}

}  // namespace postrider

namespace postrider::testing {

/// Enough for a slow machine, short enough for a hung one.
[[nodiscard]] inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(30));
}

/// The value of a call that must succeed. A failure is reported and replaced by an empty value.
template <class T>
T value_of(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  ADD_FAILURE() << describe(result.error());
  return T{};
}

inline void expect_ok(const Result<void>& result) {
  EXPECT_TRUE(result.ok()) << describe(result.error());
}

/// A fresh id for anything: event, delivery or dispatch. Thread safety: any thread.
[[nodiscard]] inline Uuid fresh_uuid() {
  thread_local const auto random = system_random();
  thread_local IdGenerator ids(system_clock(), *random);
  return ids.next();
}

/// Payloads that a careless column type, driver, encoder or comparison would change.
[[nodiscard]] inline std::vector<std::string> difficult_payloads() {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte)
    all_bytes += static_cast<char>(byte);
  constexpr std::size_t mebibyte = 1U << 20U;
  return {"",
          std::string(1, '\0'),
          std::string("a\0b", 3),
          "\xff\xfe\x80 is not UTF-8",
          "\xf0\x9f\x93\xae \xd0\xbf\xd0\xbe\xd1\x87\xd1\x82\xd0\xb0",
          R"({"id":9223372036854775807,"price":0.10,"twice":1,"twice":2})",
          R"(back\\slash \x41 \000 'quote' "double")",
          "  spaces at both ends  ",
          "line\r\nline\n",
          "12345678901234567890",
          all_bytes,
          std::string(mebibyte, 'x')};
}

}  // namespace postrider::testing

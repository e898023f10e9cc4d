#pragma once
/// \file
/// The values that a typed event is made of, between C++ and whatever form it has as bytes.
///
/// A codec sees only these: it knows no event type, and events know no format.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace postrider {

struct FieldValue;
struct FieldMember;

/// In order; a name occurs once.
using FieldMembers = std::vector<FieldMember>;
using FieldItems = std::vector<FieldValue>;

/// A floating-point number with the width that it had: 0.1F and 0.1 are written differently.
struct FieldNumber {
  double value = 0;
  bool is_float = false;
  friend bool operator==(const FieldNumber&, const FieldNumber&) = default;
};

/// Nothing, a boolean, an integer, a number, text, a list, or an object.
///
/// An integer that is not negative may come as either kind of integer.
struct FieldValue {
  using Content = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, FieldNumber,
                               std::string, FieldItems, FieldMembers>;
  Content content;
  friend bool operator==(const FieldValue&, const FieldValue&) = default;
};

struct FieldMember {
  std::string name;
  FieldValue value;
  friend bool operator==(const FieldMember&, const FieldMember&) = default;
};

}  // namespace postrider

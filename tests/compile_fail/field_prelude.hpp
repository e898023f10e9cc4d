#pragma once
/// \file
/// What the fields of these cases are made of.

#include <functional>
#include <string_view>
#include <unordered_map>
#include <variant>

#include <postrider/typed_event.hpp>

/// Not described.
struct Plain {
  int number = 0;
};
/// Without a fixed width.
enum Loose { tight };

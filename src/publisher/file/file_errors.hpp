#pragma once
#include <string>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::file {

/// The one table from errno to what it means for this destination.
///
/// The code of the outcome is `to_string(error.code)`; an unknown errno is `storage_failed`, retry.
[[nodiscard]] Error file_error(int native, std::string_view path);

}  // namespace postrider::file

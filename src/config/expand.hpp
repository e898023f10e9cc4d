#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <postrider/result.hpp>

namespace postrider::config {

/// Looks a variable of the environment up; nothing when it is unset.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

/// Puts in what `${NAME}` (the environment) and `${file:PATH}` (a file, less one newline at its
/// end) stand for. `$${` is a literal `${`.
///
/// Inside a URL with `://` a value is data and not syntax: it is percent-encoded, so that a password
/// may hold any character. A reference that is the whole text is put in as it is.
///
/// Errors: `config_invalid` for a variable that is unset or empty, a file that cannot be read, a
///   reference that is not closed. No message holds a value.
[[nodiscard]] Result<std::string> expand(std::string_view text, const Environment& environment);

}  // namespace postrider::config

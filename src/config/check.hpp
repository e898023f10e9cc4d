#pragma once
#include <string>
#include <string_view>

#include <postrider/result.hpp>

#include "config/document.hpp"
#include "config/keys.hpp"

namespace postrider::config {

/// Checks type and range of a value.
///
/// Errors: `config_invalid` naming key, value and what may be given. A value that may be a secret
///   is not named.
[[nodiscard]] Result<Checked> check_value(const Key& key, const Value& value);

/// What a text from the environment or a flag means for `key`. A text that does not fit its type
/// stays a text, which `check_value` then refuses.
[[nodiscard]] Value value_from_text(const Key& key, std::string_view text);

}  // namespace postrider::config

#pragma once
#include <string>
#include <vector>

#include "publisher/http/http_transfer.hpp"

namespace postrider::http {

/// Errors: `config_invalid` when the options are not valid.
[[nodiscard]] Result<RequestSettings> settings_of(HttpOptions options);

/// What `submit` returns for as long as the options are wrong.
[[nodiscard]] Error options_error(const std::vector<std::string>& faults);

}  // namespace postrider::http

#pragma once
/// \file
/// How fast the machine is at this moment, so that a disturbed block can be told from a good one.

#include <string>

#include <nlohmann/json.hpp>

namespace postrider::bench {

/// {"fdatasync_per_s", "commit_ms"}: flushes of 8 KiB below `folder`, and the median of one-row
/// commits in the database of `conninfo`.
[[nodiscard]] nlohmann::ordered_json probe_machine(const std::string& folder,
                                                   const std::string& conninfo);

}  // namespace postrider::bench

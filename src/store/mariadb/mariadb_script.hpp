#pragma once
/// \file
/// Scripts as the `mariadb` shell reads them: statements end with ';' at the end of a line, and
/// lines `DELIMITER …` give another end to what holds such lines itself.
///
/// Thread safety: functions without state.

#include <string>
#include <string_view>
#include <vector>

namespace postrider::store::mariadb {

/// The statements of a script, without their ends. Comments between them are left out.
[[nodiscard]] std::vector<std::string> statements_of(std::string_view script);

/// `sql` with `{partitions}` replaced.
[[nodiscard]] std::string with_partitions(std::string sql, int partitions);

}  // namespace postrider::store::mariadb

#pragma once
/// \file
/// The seam of schema changes: `Migrator`. Used by `postrider migrate` and by applications that run
/// our SQL files with a tool of their own.
///
/// Migrations have the same numbers in every database. Each runs in one transaction where the
/// database allows it, and is recorded in `postrider_schema` in the same transaction, so that a
/// killed migration is simply run again.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// Where our tables live. Chosen before the first migration and then fixed.
struct SchemaNames {
  std::string schema;  ///< PostgreSQL only; empty: "postrider" is not assumed, the search path is
  std::string prefix;  ///< put before every table name; at most 20 of a-z, 0-9, '_'
};

/// One step, as it will run.
struct MigrationStep {
  int number = 0;
  std::string name;
  std::string up;
  std::string down;
  bool applied = false;
};

class Migrator {
 public:
  virtual ~Migrator() = default;

  /// All steps that this build knows, with what the database says of them. An absent database or
  /// table means that none is applied.
  virtual Result<std::vector<MigrationStep>> steps(Deadline deadline) = 0;

  /// Applies what is missing, up to and including `target` (all when empty). Returns the numbers
  /// applied, in order. Thread and process safe: a second runner waits and then finds nothing to
  /// do.
  virtual Result<std::vector<int>> up(std::optional<int> target, Deadline deadline) = 0;

  /// Takes steps back until `target` is the highest one applied; 0 removes everything.
  ///
  /// Errors: `conflict` when rows would be lost and `even_with_rows` is false.
  virtual Result<std::vector<int>> down(int target, bool even_with_rows, Deadline deadline) = 0;
};

}  // namespace postrider

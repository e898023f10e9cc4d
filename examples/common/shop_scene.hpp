#pragma once
/// \file
/// The stage of the examples dual_write and outbox: a shop's database, a broker, and what becomes
/// of order 1 in both.

#include <memory>
#include <string>

#include "common/database.hpp"
#include "common/temporary_folder.hpp"

namespace examples {

/// A fresh shop. The broker is a file: its folder is there while the broker is up, and what has
/// been taken stays in it, whichever process dies.
class ShopScene {
 public:
  /// Prints the title. The broker is down.
  explicit ShopScene(const std::string& title);

  [[nodiscard]] std::string database_path() const { return folder_.file("shop.db"); }
  [[nodiscard]] std::string broker_file() const { return folder_.file("broker/messages"); }
  [[nodiscard]] Database& database() { return *database_; }
  void bring_broker_up();

  /// Looks into both and prints what it finds; true when they agree.
  bool tell();

 private:
  [[nodiscard]] std::int64_t messages() const;

  TemporaryFolder folder_;
  std::unique_ptr<Database> database_;
};

/// What both examples do for business: one order of 25.00.
void insert_order(Database& database);

/// An order line of an order that does not exist, which COMMIT will find.
void insert_line_that_breaks_the_commit(Database& database);

}  // namespace examples

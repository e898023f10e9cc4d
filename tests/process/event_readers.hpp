#pragma once
/// \file
/// Readers of the event table: the one of the product, two sound ones that are short enough to be
/// compared with it by eye, and what becomes of these when one rule is left out (a mutant).
///
/// None of them settles what it read, so that each sees a row by its own rule or never.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <postrider/store.hpp>

#include "servers/postgres_server.hpp"
#include "store/postgres/postgres_read_mark.hpp"

namespace postrider::testing {

/// Thread safety: one thread at a time.
class EventReader {
 public:
  virtual ~EventReader() = default;
  /// One look at the table; tells whether it brought a row. Throws what the server refuses.
  virtual bool look() = 0;

  [[nodiscard]] const std::set<std::int64_t>& seen() const { return seen_; }
  [[nodiscard]] std::size_t repeats() const { return repeats_; }

 protected:
  void see(std::int64_t seq);

 private:
  std::set<std::int64_t> seen_;
  std::size_t repeats_ = 0;
};

/// The product: claims from mark to mark.
class StoreReader final : public EventReader {
 public:
  explicit StoreReader(std::unique_ptr<Store> store);
  bool look() override;

 private:
  std::unique_ptr<Store> store_;
  ClaimRequest request_;
};

/// Position and in-flight list, with the product's own arithmetic.
class ListReader : public EventReader {
 public:
  explicit ListReader(const std::string& conninfo);
  bool look() override;

 protected:
  struct Answer {
    store::postgres::Snapshot snapshot;
    std::vector<std::int64_t> seqs;  ///< ascending
  };
  /// Rows and snapshot in one statement.
  virtual Answer ask();
  /// H: read after the snapshot.
  virtual std::uint64_t horizon(const store::postgres::Snapshot& snapshot);

  [[nodiscard]] std::string rows_statement() const;
  [[nodiscard]] PostgresSession& session() { return session_; }

 private:
  PostgresSession session_;
  store::postgres::ReadPosition position_;
};

/// Leaves out [xmax, H): the list is what the snapshot shows.
class ListWithoutHorizon final : public ListReader {
 public:
  using ListReader::ListReader;

 protected:
  std::uint64_t horizon(const store::postgres::Snapshot& snapshot) override;
};

/// Rows first, and in a statement behind them the snapshot.
class RowsBeforeSnapshot final : public ListReader {
 public:
  using ListReader::ListReader;
  /// What happens between the two.
  std::function<void()> in_between = [] {};

 protected:
  Answer ask() override;
};

/// Position and the numbers missing below it, each with a stamp that tells when it may be given up.
class GapReader : public EventReader {
 public:
  explicit GapReader(const std::string& conninfo);
  bool look() override;

 protected:
  /// Of numbers that a look with this snapshot found missing: the next xid, read after it.
  virtual std::uint64_t stamp(const store::postgres::Snapshot& snapshot);
  /// Whether a number that a look with this snapshot did not find will never come.
  [[nodiscard]] virtual bool is_over(std::uint64_t stamp,
                                     const store::postgres::Snapshot& snapshot) const;

 private:
  [[nodiscard]] std::string statement() const;
  void give_up(const store::postgres::Snapshot& snapshot);
  void take(const std::vector<std::int64_t>& seqs, std::vector<std::int64_t>& missing);

  PostgresSession session_;
  std::int64_t position_ = 0;
  std::map<std::int64_t, std::uint64_t> gaps_;  // number to stamp
};

/// Gives a number up when xmin has moved past what it was when the number was first missed.
class GapsUntilXminMoves final : public GapReader {
 public:
  using GapReader::GapReader;

 protected:
  std::uint64_t stamp(const store::postgres::Snapshot& snapshot) override;
  [[nodiscard]] bool is_over(std::uint64_t stamp,
                             const store::postgres::Snapshot& snapshot) const override;
};

/// Stamps with the snapshot's xmax in place of the next xid.
class GapsStampedByXmax final : public GapReader {
 public:
  using GapReader::GapReader;

 protected:
  std::uint64_t stamp(const store::postgres::Snapshot& snapshot) override;
};

}  // namespace postrider::testing

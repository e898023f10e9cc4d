#pragma once
/// \file
/// Writers of every kind on one database: what a reader of the event table has to stand.
///
/// Short transactions, rollbacks, savepoints, exceptions, conflicts, COPY from a slow client,
/// prepared transactions, transactions that are held, and clients that vanish. A writer survives
/// everything that the server answers, and the server's crash.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <postrider/clock.hpp>

namespace postrider::testing {

class WriterLoad {
 public:
  struct Options {
    int writers = 32;  ///< connections
    /// The longest that a transaction is held open; zero: none is.
    milliseconds longest_hold{0};
    std::uint32_t seed = 1;
  };

  /// Starts to write. Requires: a migrated database of a server that takes prepared transactions.
  WriterLoad(std::string conninfo, Options options);
  ~WriterLoad();
  WriterLoad(const WriterLoad&) = delete;
  WriterLoad& operator=(const WriterLoad&) = delete;

  /// Lets every writer end its transaction, and commits what one of them left prepared when the
  /// server crashed. Idempotent. Requires: the server is running.
  void stop();

  /// How often each kind of transaction ended as it should; those of `all_kinds` that may occur.
  [[nodiscard]] std::map<std::string_view, int> successes() const;

 private:
  class Writer;

  void write(const std::stop_token& stop, int number);
  void count(std::string_view kind);
  void commit_prepared() const;

  std::string conninfo_;
  Options options_;
  mutable std::mutex mutex_;
  std::map<std::string_view, int> successes_;
  std::vector<std::jthread> writers_;
};

}  // namespace postrider::testing

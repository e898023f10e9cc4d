// bench-writer --conninfo C --table T --connections N --milliseconds M
//
// Business transactions on N connections at once: an account changes, the change is entered in a
// journal, and an event tells of it in table T. Every statement is prepared, and BEGIN and COMMIT
// are statements of their own. Prints {"transactions_per_second": R}.
#include <libpq-fe.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/arguments.hpp"

namespace postrider::bench {
namespace {

constexpr std::uint32_t accounts = 100'000;
constexpr std::size_t payload_bytes = 300;

class Writer {
 public:
  Writer(const std::string& conninfo, const std::string& table, std::uint32_t seed)
      : connection_(PQconnectdb(conninfo.c_str()), &PQfinish), chance_(seed) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
    prepare("begin", "BEGIN");
    prepare("account", "UPDATE bench_accounts SET balance = balance + 1 WHERE id = $1::bigint");
    prepare("journal", "INSERT INTO bench_journal (account, amount) VALUES ($1::bigint, 1)");
    prepare("event", "INSERT INTO " + table +
                         " (aggregate_type, aggregate_id, type, payload) "
                         "VALUES ('account', $1::text, 'account.changed', $2::text)");
    prepare("commit", "COMMIT");
  }

  void transact() {
    const auto account = std::to_string(1 + chance_() % accounts);
    run("begin", {});
    run("account", {account.c_str()});
    run("journal", {account.c_str()});
    run("event", {account.c_str(), payload_.c_str()});
    run("commit", {});
  }

 private:
  void prepare(const char* name, const std::string& sql) {
    check(PQprepare(connection_.get(), name, sql.c_str(), 0, nullptr));
  }
  void run(const char* name, const std::vector<const char*>& values) {
    check(PQexecPrepared(connection_.get(), name, static_cast<int>(values.size()), values.data(),
                         nullptr, nullptr, 0));
  }
  static void check(PGresult* result) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> owned(result, &PQclear);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
      throw std::runtime_error(PQresultErrorMessage(result));
    }
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::minstd_rand chance_;
  std::string payload_ = "{\"text\":\"" + std::string(payload_bytes - 11, 'x') + "\"}";
};

double transactions_per_second(const Arguments& arguments) {
  const auto connections = static_cast<std::uint32_t>(arguments.number("connections", 8));
  std::vector<std::unique_ptr<Writer>> writers;
  for (std::uint32_t i = 0; i < connections; ++i) {
    writers.push_back(
        std::make_unique<Writer>(arguments.text("conninfo"), arguments.text("table"), i + 1));
  }
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> transactions = 0;
  std::vector<std::exception_ptr> failures(connections);
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < connections; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (; !over; ++transactions)
          writers[i]->transact();
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(arguments.number("milliseconds", 3000)));
  over = true;
  for (auto& thread : threads)
    thread.join();
  const auto elapsed = std::chrono::steady_clock::now() - begun;
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return static_cast<double>(transactions) / std::chrono::duration<double>(elapsed).count();
}

}  // namespace
}  // namespace postrider::bench

int main(int count, char** words) {
  using namespace postrider::bench;
  try {
    const auto rate = transactions_per_second(Arguments(count, words));
    std::cout << nlohmann::json{{"transactions_per_second", rate}} << "\n";
    return 0;
  } catch (const std::exception& failure) {
    std::cout << failure.what() << "\n";
    return 1;
  }
}

#include "process/writer_load.hpp"

#include <array>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include <postrider/ids.hpp>

#include "servers/postgres_server.hpp"

namespace postrider::testing {
namespace {

/// Few enough that writers meet at an aggregate's lock.
constexpr std::uint32_t aggregates = 200;
/// A writer thinks for up to so long between two transactions, so that a reader can keep up.
constexpr milliseconds longest_thought{10};
/// A client that is slow to end its COPY or its prepared transaction.
constexpr milliseconds longest_delay{60};
constexpr milliseconds reconnect_wait{20};
constexpr const char* prefix_of_prepared = "load-";

void discard(PostgresSession& session) {
  session.run("ROLLBACK");
}

}  // namespace

/// One connection, and what can be done with it. Every function is one transaction; it throws what
/// the server refuses.
class WriterLoad::Writer {
 public:
  Writer(const std::string& conninfo, const Options& options, std::stop_token stop, int number)
      : conninfo_(conninfo),
        options_(options),
        stop_(std::move(stop)),
        number_(number),
        chance_(options.seed * 1000 + static_cast<std::uint32_t>(number)) {}

  struct Kind {
    std::string_view name;
    std::uint32_t weight;
    void (Writer::*run)();
    bool holds = false;
  };
  static const std::array<Kind, 11> kinds;

  /// Writes once. Returns the kind; empty when it failed.
  std::string_view write() {
    try {
      connect();
      const auto& kind = choose();
      (this->*kind.run)();
      return kind.name;
    } catch (const std::runtime_error&) {
      recover();
      return {};
    }
  }

  /// Returns early when the writer is to stop.
  void pause(milliseconds least, milliseconds most) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop_, least + up_to(most - least), [] { return false; });
  }

 private:
  void connect() {
    if (session_) return;
    session_ = std::make_unique<PostgresSession>(conninfo_);
    // Nobody waits long behind an aggregate that is held or prepared.
    session_->run("SET lock_timeout = '200ms'");
  }

  void recover() {
    try {
      if (session_) discard(*session_);
    } catch (const std::runtime_error&) {
      session_.reset();
    }
    if (!session_) pause(reconnect_wait, reconnect_wait);
  }

  const Kind& choose() {
    for (;;) {
      const auto& kind = kinds.at(chance_() % kinds.size());
      const bool may = !kind.holds || options_.longest_hold > milliseconds::zero();
      if (may && chance_() % 100 < kind.weight) return kind;
    }
  }

  // The kinds.

  void one_row() { run(insert(values())); }

  void many_rows() {
    const auto rows = 2 + chance_() % 30;
    if (chance_() % 2 == 0) {
      run("INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) SELECT "
          "'order', " +
          aggregate() + ", 'many', n::text FROM generate_series(1, " + std::to_string(rows) +
          ") AS n");
      return;
    }
    auto text = values();
    for (std::uint32_t i = 1; i < rows; ++i)
      text += ", " + values();
    run(insert(text));
  }

  void rolled_back() {
    run("BEGIN");
    many_rows();
    run("ROLLBACK");
  }

  void savepoints() {
    run("BEGIN");
    run(insert(values()));
    run("SAVEPOINT undone");
    many_rows();
    run("ROLLBACK TO undone");
    run(insert(values()));
    run("SAVEPOINT kept");
    run(insert(values()));
    run("RELEASE kept");
    run("COMMIT");
  }

  void exception() {
    run("DO $$ BEGIN " + insert(values()) + "; BEGIN " + insert(values()) + "; PERFORM 1 / 0; " +
        "EXCEPTION WHEN division_by_zero THEN " + insert(values()) + "; END; END $$");
  }

  void conflict() {
    const auto id = "'" + fresh_id() + "', ";
    const auto row = [&] { return "(" + id + values().substr(1); };
    run("INSERT INTO outbox_events (id, aggregate_type, aggregate_id, type, payload) VALUES " +
        row() + ", " + row() + " ON CONFLICT (id) DO NOTHING");
  }

  void slow_copy() {
    std::vector<std::string> lines;
    for (auto rows = 2 + chance_() % 10; rows > 0; --rows)
      lines.push_back("order\t" + std::to_string(chance_() % aggregates) + "\tcopied\t{}");
    run("BEGIN");
    session_->copy("COPY outbox_events (aggregate_type, aggregate_id, type, payload) FROM STDIN",
                   lines, [this] { pause(milliseconds(0), longest_delay / 10); });
    run("COMMIT");
  }

  void prepared() {
    const auto name = prefix_of_prepared + std::to_string(number_) + "-" + fresh_id();
    run("BEGIN");
    run(insert(values()));
    run("PREPARE TRANSACTION '" + name + "'");
    pause(milliseconds(0), options_.longest_hold / 4 + longest_delay);
    run((chance_() % 4 == 0 ? "ROLLBACK PREPARED '" : "COMMIT PREPARED '") + name + "'");
  }

  void held() {
    run("BEGIN");
    run(insert(values()));
    // Mostly short, sometimes as long as it gets.
    const double part = std::uniform_real_distribution<double>()(chance_);
    const auto hold =
        std::chrono::duration_cast<milliseconds>(part * part * part * options_.longest_hold);
    pause(hold, hold);
    run(insert(values()));
    run(chance_() % 5 == 0 ? "ROLLBACK" : "COMMIT");
  }

  void vanished() {
    run("BEGIN");
    many_rows();
    session_.reset();
  }

  /// Its numbers are drawn round trips before they can be seen.
  void several_statements() {
    run("BEGIN");
    for (int i = 0; i < 3; ++i) {
      run(insert(values()));
      pause(milliseconds(0), milliseconds(10));
    }
    run("COMMIT");
  }

  // Their parts.

  void run(const std::string& sql) { session_->run(sql); }

  static std::string insert(const std::string& rows) {
    return "INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload) VALUES " + rows;
  }

  /// One row; every fifth belongs to no aggregate.
  std::string values() {
    if (chance_() % 5 == 0) return "(NULL, NULL, 'single', '{}')";
    return "('order', " + aggregate() + ", 'single', '{}')";
  }

  std::string aggregate() { return "'" + std::to_string(chance_() % aggregates) + "'"; }

  milliseconds up_to(milliseconds most) {
    return milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, most.count())(chance_));
  }

  std::string fresh_id() { return ids_.next().to_string(); }

  std::string conninfo_;
  Options options_;
  std::stop_token stop_;
  int number_;
  std::mt19937 chance_;
  std::unique_ptr<Random> random_ = system_random();
  IdGenerator ids_{system_clock(), *random_};
  std::unique_ptr<PostgresSession> session_;
};

// A weight is how many of 100 draws of the kind are taken.
const std::array<WriterLoad::Writer::Kind, 11> WriterLoad::Writer::kinds = {{
    {"one row", 100, &Writer::one_row},
    {"many rows", 60, &Writer::many_rows},
    {"several statements", 60, &Writer::several_statements},
    {"rolled back", 40, &Writer::rolled_back},
    {"savepoints", 60, &Writer::savepoints},
    {"exception", 60, &Writer::exception},
    {"conflict", 60, &Writer::conflict},
    {"slow copy", 40, &Writer::slow_copy},
    {"prepared", 10, &Writer::prepared},
    {"held", 20, &Writer::held, true},
    {"vanished", 20, &Writer::vanished},
}};

WriterLoad::WriterLoad(std::string conninfo, Options options)
    : conninfo_(std::move(conninfo)), options_(options) {
  for (const auto& kind : Writer::kinds) {
    if (!kind.holds || options_.longest_hold > milliseconds::zero()) successes_[kind.name] = 0;
  }
  for (int number = 0; number < options_.writers; ++number) {
    writers_.emplace_back([this, number](const std::stop_token& stop) { write(stop, number); });
  }
}

WriterLoad::~WriterLoad() = default;

void WriterLoad::write(const std::stop_token& stop, int number) {
  Writer writer(conninfo_, options_, stop, number);
  while (!stop.stop_requested()) {
    count(writer.write());
    writer.pause(milliseconds(0), longest_thought);
  }
}

void WriterLoad::count(std::string_view kind) {
  if (kind.empty()) return;
  const std::lock_guard lock(mutex_);
  ++successes_[kind];
}

std::map<std::string_view, int> WriterLoad::successes() const {
  const std::lock_guard lock(mutex_);
  return successes_;
}

void WriterLoad::stop() {
  for (auto& writer : writers_)
    writer.request_stop();
  writers_.clear();
  commit_prepared();
}

void WriterLoad::commit_prepared() const {
  PostgresSession session(conninfo_);
  const auto left = session.rows(
      std::string("SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND gid "
                  "LIKE '") +
      prefix_of_prepared + "%'");
  for (const auto& name : left)
    session.run("COMMIT PREPARED '" + name + "'");
}

}  // namespace postrider::testing

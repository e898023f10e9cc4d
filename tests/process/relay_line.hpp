#pragma once
/// \file
/// A line from a PostgreSQL database through relays to a RabbitMQ queue, for tests of what happens
/// to relays on it.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres_database.hpp"
#include "process/drain_run.hpp"
#include "servers/rabbitmq_session.hpp"

namespace postrider::testing {

/// True, with the reason told, when a server of a line is missing: leave the test.
[[nodiscard]] bool lacks_servers();

/// What is not as usual on a line.
struct LineSettings {
  std::string relay = std::string(relay_settings);  ///< [relay] of postrider.toml
  std::string route;                                ///< lines of the route's table
  std::string more;                                 ///< further tables
  std::string broker_host = "127.0.0.1";
  int broker_port = 0;         ///< 0: the broker itself; else a proxy's
  int store_port = 0;          ///< 0: the database itself; else a proxy's
  Postgres* server = nullptr;  ///< null: the shared one
};

/// A line whose database stands on this server.
[[nodiscard]] LineSettings on_server(Postgres& server);

/// Thread safety: one thread at a time.
class RelayLine {
 public:
  /// `name` is that of the exchange and of the queue. Requires: `lacks_servers` is false.
  explicit RelayLine(std::string name, const LineSettings& settings = {});
  ~RelayLine();
  RelayLine(const RelayLine&) = delete;
  RelayLine& operator=(const RelayLine&) = delete;

  [[nodiscard]] Workshop& shop() { return shop_; }
  [[nodiscard]] const PostgresDatabase& database() const { return database_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Events on this line. Borrows it.
  [[nodiscard]] DrainRun run();

  /// Starts `postrider relay --loop`, with more words.
  [[nodiscard]] std::unique_ptr<Running> start_relay(const std::vector<std::string>& words = {});
  /// The first column of the first row, in a session of its own.
  std::string sql(const std::string& statement) const;
  [[nodiscard]] std::int64_t count(const std::string& statement) const;
  /// Events that no relay has settled yet.
  [[nodiscard]] std::int64_t unrouted() const {
    return count("outbox_events WHERE routed_at IS NULL");
  }

  /// Takes what has arrived at the queue, and returns everything so far. While the broker is away
  /// nothing arrives.
  const std::vector<Arrived>& arrived();
  /// The queue with its binding; a line begins with them.
  void declare_queue();
  /// Messages on the queue are taken by nobody else; a session lost with the broker is made anew.
  [[nodiscard]] RabbitmqSession& session();

 private:
  /// What has arrived and was not taken yet; taking it all for each look would tell how fast the
  /// test is, and not where the relay stands.
  [[nodiscard]] std::size_t waiting();
  void take_all();

  const std::string name_;
  PostgresDatabase database_;
  Workshop shop_;
  std::optional<RabbitmqSession> session_;
  std::vector<Arrived> arrived_;
};

/// How many lines of a relay's log tell of `kind`.
[[nodiscard]] std::size_t count_of(const Running& relay, const std::string& kind);

/// Ends a relay by SIGTERM and expects that it says that all is in order.
void expect_clean_stop(Running& relay);

/// Waits until a relay has told of `kind` so many times; false when it does not come to that.
[[nodiscard]] bool tells(const Running& relay, const std::string& kind, std::size_t times = 1);

}  // namespace postrider::testing

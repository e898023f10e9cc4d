#include <chrono>
#include <stdexcept>

#include "bench/bare.hpp"
#include "bench/bare_libpq.hpp"

namespace postrider::bench {
namespace {

constexpr std::uint64_t bigint_type = 20;

void prepare_read_and_mark(const Connection& connection) {
  prepare(connection, "read",
          "SELECT seq, id, aggregate_type, aggregate_id, type, payload, content_type, "
          "headers, created_at FROM outbox_events WHERE seq > $1::bigint "
          "ORDER BY seq LIMIT 1000");
  prepare(connection, "mark",
          "UPDATE outbox_events SET routed_at = clock_timestamp() "
          "WHERE seq = ANY ($1::bigint[]) AND routed_at IS NULL");
}

}  // namespace

double read_and_mark(const std::string& conninfo, std::int64_t events) {
  const auto begun = std::chrono::steady_clock::now();
  const auto connection = open_session(conninfo);
  prepare_read_and_mark(connection);
  std::string position;
  put(position, 0, 8);
  std::uint64_t touched = 0;
  std::int64_t done = 0;
  while (done < events) {
    const auto rows = execute(connection, "read", {position}, PGRES_TUPLES_OK);
    const int count = PQntuples(rows.get());
    if (count == 0) throw std::runtime_error("fewer events than expected");
    touched += touch(rows);
    execute(connection, "mark", {array_of_first_column(rows, bigint_type)}, PGRES_COMMAND_OK);
    position.assign(PQgetvalue(rows.get(), count - 1, 0), 8);
    done += count;
  }
  if (touched == 0) throw std::runtime_error("the events are empty");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace postrider::bench

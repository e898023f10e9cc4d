#include <utility>

#include <postrider/store/postgres.hpp>

#include "store/postgres/postgres_connection.hpp"

namespace postrider {
namespace store::postgres {
namespace {

/// The two statements of what goes by its age alone.
struct ByAge {
  std::string_view purgeable;
  std::string_view purge;
};

ByAge by_age(Kept kept) {
  switch (kept) {
    case Kept::keys:
      return {"keys_purgeable", "keys_purge"};
    case Kept::workers:
      return {"workers_purgeable", "workers_purge"};
    default:
      return {"inbox_purgeable", "inbox_purge"};
  }
}

Call age_call(std::string_view statement, const PurgeRequest& request) {
  Call call{statement};
  call.parameters.time_if(request.now).integer(request.older_than.count());
  return call;
}

void add_rows(Call& call, const PurgeRequest& request) {
  call.parameters.integer(static_cast<std::int64_t>(request.rows));
}

void add_operator(Call& call, const std::optional<Operator>& who) {
  if (who) {
    call.parameters.text(who->name).text(who->reason);
  } else {
    call.parameters.null().null();
  }
}

class PostgresPurger final : public Purger {
 public:
  explicit PostgresPurger(PostgresOptions options) : connection_(std::move(options), Use::relay) {}

  Result<PurgeSlice> purge(const PurgeRequest& request, const std::optional<Operator>& who,
                           Deadline deadline) override {
    if (auto checked = check(request); !checked) return checked.error();
    if (request.kept == Kept::events) return purge_events(request, who, deadline);
    return purge_by_age(by_age(request.kept), request, who, deadline);
  }

 private:
  Result<PurgeSlice> purge_events(const PurgeRequest& request, const std::optional<Operator>& who,
                                  Deadline deadline) {
    auto call = age_call(request.dry_run ? "events_purgeable" : "events_purge", request);
    call.parameters.integer(request.after.value());
    add_rows(call, request);
    if (!request.dry_run) add_operator(call, who);
    const auto answer = execute(std::move(call), request.dry_run, deadline);
    if (!answer) return answer.error();
    return PurgeSlice{answer->integer(0, 0), Seq(answer->integer(0, 1)), answer->boolean(0, 2)};
  }

  Result<PurgeSlice> purge_by_age(const ByAge& statements, const PurgeRequest& request,
                                  const std::optional<Operator>& who, Deadline deadline) {
    auto call = age_call(request.dry_run ? statements.purgeable : statements.purge, request);
    if (!request.dry_run) {
      add_rows(call, request);
      add_operator(call, who);
    }
    const auto answer = execute(std::move(call), request.dry_run, deadline);
    if (!answer) return answer.error();
    const auto rows = answer->integer(0, 0);
    return PurgeSlice{
        rows, {}, !request.dry_run && rows == static_cast<std::int64_t>(request.rows)};
  }

  Result<Rows> execute(Call call, bool only_reads, Deadline deadline) {
    const std::vector<Call> calls = {std::move(call)};
    auto results =
        only_reads ? connection_.read(calls, deadline) : connection_.write(calls, deadline);
    if (!results) return results.error();
    return std::move(results->front());
  }

  PostgresConnection connection_;
};

}  // namespace
}  // namespace store::postgres

std::unique_ptr<Purger> make_postgres_purger(PostgresOptions options) {
  return std::make_unique<store::postgres::PostgresPurger>(std::move(options));
}

}  // namespace postrider

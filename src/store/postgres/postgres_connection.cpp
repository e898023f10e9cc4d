#include "store/postgres/postgres_connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "store/common/sql_names.hpp"
#include "store/postgres/postgres_error_field.hpp"
#include "store_postgres_sql.hpp"

namespace postrider::store::postgres {
namespace {

namespace statements = sql::store_postgres;

/// xid8 and pg_current_snapshot came with 13.
constexpr int least_server_version = 130'000;
constexpr int most_partitions = 1024;

constexpr std::string_view begin_statement = "session_begin";
constexpr std::string_view commit_statement = "session_commit";
constexpr std::string_view rollback_statement = "session_rollback";
constexpr std::string_view limits_statement = "session_limits";

/// So that the server answers before the caller gives up, a lock is waited for less long than a
/// statement, and a statement less long than the call.
constexpr int lock_share_percent = 60;
constexpr int statement_share_percent = 80;

using ResultOwner = std::unique_ptr<pg_result, decltype(&PQclear)>;

Error failure(ErrorCode code, Disposition disposition, std::string message) {
  return {code, disposition, std::move(message), "postgres", ""};
}

Result<void> check_options(const PostgresOptions& options) {
  if (options.partitions < 1 || options.partitions > most_partitions) {
    return failure(ErrorCode::config_invalid, Disposition::stop,
                   fmt::format("{} partitions were asked for. Give 1 to {}.", options.partitions,
                               most_partitions));
  }
  return validate(options.names, SchemaSupport::optional);
}

/// Keywords in the order in which later ones win. What stands before the user's own string is a
/// default: a dead peer is noticed within half a minute, also when the kernel holds unsent bytes.
struct ConnectKeywords {
  explicit ConnectKeywords(const std::string& conninfo)
      : values{"postrider", "10", "5", "3", "15000", conninfo.c_str(), "UTF8", nullptr} {}

  std::array<const char*, 8> names = {
      "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count",
      "tcp_user_timeout",          "dbname",          "client_encoding",     nullptr};
  std::array<const char*, 8> values;
};

/// False when the deadline passed first.
bool wait_for_socket(pg_conn* connection, short events, Deadline deadline) {
  pollfd waiting{PQsocket(connection), events, 0};
  for (;;) {
    const auto left = deadline.remaining().count();
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (deadline.passed()) return false;
  }
}

Parameters limits(Deadline deadline) {
  const auto share = [&](int percent) {
    return std::to_string(std::max<std::int64_t>(deadline.remaining().count() * percent / 100, 1));
  };
  Parameters parameters;
  parameters.text(share(lock_share_percent)).text(share(statement_share_percent));
  return parameters;
}

/// What a failed connect says is taken apart for its SQLSTATE, as libpq has no function for it.
Error connect_error(pg_conn* connection) {
  const std::string message = PQerrorMessage(connection);
  std::string said = message;
  const auto state = state_in(message);
  if (!state.empty()) {
    const auto code = static_cast<std::size_t>(state.data() - message.data());
    said = message.substr(0, code) + message.substr(code + state.size() + 2);
    return server_error(state, said, "", "connect", Stage::before_commit);
  }
  if (PQconnectionNeedsPassword(connection) != 0) {
    return server_error("28P01", "no password was given", "", "connect", Stage::before_commit);
  }
  return connection_lost(said, "connect", Stage::before_commit);
}

}  // namespace

/// A result that is awaited; without a statement the end of a transaction.
struct PostgresConnection::Answer {
  std::string_view statement;
  bool preparing = false;
};

PostgresConnection::PostgresConnection(PostgresOptions options, Use use)
    : options_(std::move(options)), use_(use), connection_(nullptr, &PQfinish) {}

PostgresConnection::~PostgresConnection() = default;

void PostgresConnection::close() noexcept {
  connection_.reset();
  prepared_.clear();
  locked_ = false;
}

Result<void> PostgresConnection::open(Deadline deadline) {
  if (connection_ && !closed_by_server()) return check_server();
  close();
  if (auto checked = check_options(options_); !checked) return checked;
  if (auto connected = connect(deadline); !connected) {
    close();
    return connected;
  }
  if (auto ready = prepare_session(deadline); !ready) {
    close();
    return ready;
  }
  return check_server();
}

Result<void> PostgresConnection::check_server() const {
  if (!held_to_ || *held_to_ == identity_) return {};
  return failure(ErrorCode::unavailable, Disposition::retry,
                 "another server has taken over, and the leases are of the one before. Nothing has "
                 "to be done: they are taken anew.");
}

int PostgresConnection::announced_pid() const noexcept {
  return PQbackendPID(connection_.get());
}

/// Looks before anything is sent: a request that goes into a dead connection would be in doubt.
bool PostgresConnection::closed_by_server() {
  pollfd waiting{PQsocket(connection_.get()), POLLIN, 0};
  while (::poll(&waiting, 1, 0) > 0) {
    if (PQconsumeInput(connection_.get()) == 0) return true;
    static_cast<void>(PQisBusy(connection_.get()));  // Takes up what was read.
    if (PQstatus(connection_.get()) == CONNECTION_BAD) return true;
  }
  return PQstatus(connection_.get()) == CONNECTION_BAD;
}

Result<void> PostgresConnection::connect(Deadline deadline) {
  const ConnectKeywords keywords(options_.conninfo);
  connection_.reset(PQconnectStartParams(keywords.names.data(), keywords.values.data(), 1));
  auto* const connection = connection_.get();
  if (connection == nullptr || PQstatus(connection) == CONNECTION_BAD) {
    return connect_error(connection);
  }
  // Notices are for people at a terminal; a server that stops sends one into the greeting.
  PQsetNoticeReceiver(
      connection, [](void*, const PGresult*) {}, nullptr);
  PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
  for (auto state = PGRES_POLLING_WRITING; state != PGRES_POLLING_OK;
       state = PQconnectPoll(connection)) {
    if (state == PGRES_POLLING_FAILED) return connect_error(connection);
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!wait_for_socket(connection, events, deadline)) {
      return deadline_passed("connect", Stage::before_commit);
    }
  }
  PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
  if (PQserverVersion(connection) < least_server_version) {
    return failure(ErrorCode::unsupported, Disposition::stop,
                   fmt::format("the server is PostgreSQL {} and 13 is needed. Use a newer server.",
                               PQserverVersion(connection) / 10'000));
  }
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) == 0) {
    return lost("connect", Stage::before_commit);
  }
  return {};
}

Result<void> PostgresConnection::prepare_session(Deadline deadline) {
  std::vector<Call> calls = {{"session_open"}};
  if (use_ == Use::relay) calls.push_back({"session_tune"});
  auto rows = exchange(calls, Syncs::after_each, deadline);
  if (!rows) return rows.error();
  if (auto adopted = adopt_session(rows->front()); !adopted) return adopted;
  return lock_session(deadline);
}

Result<void> PostgresConnection::lock_session(Deadline deadline) {
  if (!lock_key_ || locked_) return {};
  Call call{"session_lock"};
  call.parameters.small_integer(PQbackendPID(connection_.get())).small_integer(*lock_key_);
  auto rows = exchange(std::vector<Call>{std::move(call)}, Syncs::after_each, deadline);
  if (!rows) return rows.error();
  locked_ = rows->front().boolean(0, 0);
  return {};
}

Result<std::optional<std::int32_t>> PostgresConnection::session_lock(Deadline deadline) {
  if (auto opened = open(deadline); !opened) return opened.error();
  if (auto tried = lock_session(deadline); !tried) return tried.error();
  return locked_ ? lock_key_ : std::nullopt;
}

Result<void> PostgresConnection::adopt_session(const Rows& session) {
  identity_ = {std::to_string(session.integer(0, 0)), session.small_integer(0, 1)};
  const bool in_recovery = session.boolean(0, 2);
  const auto encoding = session.text(0, 3);
  names_ = options_.names;
  if (names_.schema.empty()) names_.schema = session.text(0, 4);

  if (in_recovery && use_ != Use::people) {
    return failure(ErrorCode::primary_not_writable, Disposition::retry,
                   "the server is a standby. Point Postrider at the primary.");
  }
  if (encoding != "UTF8") {
    return failure(ErrorCode::unsupported, Disposition::stop,
                   fmt::format("the database's encoding is {}, which does not keep every payload "
                               "as it is. Use a database with ENCODING 'UTF8'.",
                               encoding));
  }
  // It goes into SQL text, and quoting it in every form that this text has is not worth its price.
  if (names_.schema.empty() || names_.schema.find_first_of("\"'\\{$") != std::string::npos) {
    return failure(ErrorCode::config_invalid, Disposition::stop,
                   "the connection has no current schema that can be used. Name one in the "
                   "configuration.");
  }
  return {};
}

std::string PostgresConnection::render(std::string_view statement) const {
  const auto found =
      std::find_if(std::begin(statements::statements), std::end(statements::statements),
                   [&](const auto& row) { return row.name == statement; });
  POSTRIDER_ASSERT(found != std::end(statements::statements));
  return substitute_names(found->text, names_);
}

Result<std::vector<Rows>> PostgresConnection::read(std::span<const Call> calls, Deadline deadline) {
  if (!in_transaction()) {
    if (auto opened = open(deadline); !opened) return opened.error();
  }
  return exchange(calls, Syncs::after_each, deadline);
}

Result<std::vector<Rows>> PostgresConnection::write(std::span<const Call> calls,
                                                    Deadline deadline) {
  if (auto opened = open(deadline); !opened) return opened.error();
  std::vector<Call> all;
  all.reserve(calls.size() + 3);
  all.push_back({begin_statement});
  all.push_back({limits_statement, limits(deadline)});
  all.insert(all.end(), calls.begin(), calls.end());
  all.push_back({commit_statement});
  auto rows = exchange(all, Syncs::at_end, deadline);
  if (!rows) {
    rollback(deadline);
    return rows;
  }
  rows->erase(rows->begin(), rows->begin() + 2);
  rows->pop_back();
  return rows;
}

Result<void> PostgresConnection::begin(Deadline deadline) {
  if (auto opened = open(deadline); !opened) return opened;
  const std::vector<Call> calls = {{begin_statement}, {limits_statement, limits(deadline)}};
  auto begun = exchange(calls, Syncs::at_end, deadline);
  if (begun) return {};
  rollback(deadline);
  return begun.error();
}

Result<std::vector<Rows>> PostgresConnection::run(std::span<const Call> calls, Deadline deadline) {
  if (!in_transaction()) return lost("a transaction", Stage::before_commit);
  auto rows = exchange(calls, Syncs::at_end, deadline);
  if (!rows) rollback(deadline);
  return rows;
}

Result<void> PostgresConnection::commit(Deadline deadline) {
  if (!in_transaction()) return lost("a transaction", Stage::before_commit);
  auto committed = exchange(std::vector<Call>{{commit_statement}}, Syncs::at_end, deadline);
  if (committed) return {};
  rollback(deadline);
  return committed.error();
}

bool PostgresConnection::in_transaction() const {
  return connection_ && PQtransactionStatus(connection_.get()) == PQTRANS_INTRANS;
}

/// A connection whose transaction cannot be ended is closed, which ends it too.
void PostgresConnection::rollback(Deadline deadline) {
  if (!connection_ || PQtransactionStatus(connection_.get()) == PQTRANS_IDLE) return;
  const std::string detail = std::move(error_detail_);
  const auto rolled_back =
      exchange(std::vector<Call>{{rollback_statement}}, Syncs::at_end, deadline);
  if (!rolled_back) close();
  error_detail_ = detail;
}

Result<void> PostgresConnection::run_script(std::string_view sql, std::string_view doing,
                                            Deadline deadline) {
  if (!in_transaction()) return lost(doing, Stage::before_commit);
  auto* const connection = connection_.get();
  // Several statements in one string are not for pipelines.
  const bool sent =
      PQexitPipelineMode(connection) != 0 && PQsendQuery(connection, std::string(sql).c_str()) != 0;
  if (!sent) return lost(doing, Stage::before_commit);
  Result<void> done;
  for (;;) {
    if (auto there = await_result(doing, Stage::before_commit, deadline); !there) return there;
    const ResultOwner result(PQgetResult(connection), &PQclear);
    if (!result) break;
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_FATAL_ERROR && done.ok()) {
      done = take_error(result.get(), doing, Stage::before_commit, Stage::before_commit);
      if (!connection_) return done;
    }
  }
  if (PQenterPipelineMode(connection) == 0) return lost(doing, Stage::before_commit);
  if (!done) rollback(deadline);
  return done;
}

Result<std::vector<std::string>> PostgresConnection::await_notification(int wake,
                                                                        Deadline deadline) {
  constexpr std::string_view doing = "a notification";
  if (!connection_) return lost(doing, Stage::before_commit);
  for (;;) {
    if (PQconsumeInput(connection_.get()) == 0) return lost(doing, Stage::before_commit);
    auto said = notifications();
    const auto left = deadline.remaining().count();
    if (!said.empty() || left == 0) return said;
    std::array<pollfd, 2> waiting{{{PQsocket(connection_.get()), POLLIN, 0}, {wake, POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (waiting[1].revents != 0) return said;
  }
}

std::vector<std::string> PostgresConnection::notifications() {
  std::vector<std::string> said;
  while (auto* const notification = PQnotifies(connection_.get())) {
    said.emplace_back(notification->extra);
    PQfreemem(notification);
  }
  return said;
}

Result<std::vector<Rows>> PostgresConnection::exchange(std::span<const Call> calls, Syncs syncs,
                                                       Deadline deadline) {
  POSTRIDER_ASSERT(!calls.empty());
  error_detail_.clear();
  if (deadline.passed()) return deadline_passed(calls.front().statement, Stage::before_commit);
  const bool commits = calls.back().statement == commit_statement;
  const Stage when_lost = commits ? Stage::commit : Stage::before_commit;
  std::vector<Answer> awaited;
  if (!send(calls, syncs, awaited)) return lost(calls.front().statement, when_lost);
  return receive(awaited, when_lost, deadline);
}

bool PostgresConnection::send(std::span<const Call> calls, Syncs syncs,
                              std::vector<Answer>& awaited) {
  auto* const connection = connection_.get();
  std::set<std::string_view> preparing;
  for (const auto& call : calls) {
    const std::string name(call.statement);
    if (!prepared_.contains(name) && preparing.insert(call.statement).second) {
      const auto text = render(call.statement);
      if (PQsendPrepare(connection, name.c_str(), text.c_str(), 0, nullptr) == 0) return false;
      awaited.push_back({call.statement, true});
    }
    const auto raw = call.parameters.raw();
    if (PQsendQueryPrepared(connection, name.c_str(), call.parameters.count(), raw.values.data(),
                            raw.lengths.data(), raw.formats.data(), 1) == 0) {
      return false;
    }
    awaited.push_back({call.statement});
    const bool sync = syncs == Syncs::after_each || &call == &calls.back();
    if (!sync) continue;
    if (PQpipelineSync(connection) == 0) return false;
    awaited.push_back({});
  }
  return true;
}

Result<std::vector<Rows>> PostgresConnection::receive(const std::vector<Answer>& awaited,
                                                      Stage when_lost, Deadline deadline) {
  std::vector<Rows> rows;
  std::optional<Error> first_error;
  for (const auto& answer : awaited) {
    // A server that has refused one statement takes none of the rest.
    const Stage stage = first_error ? Stage::before_commit : when_lost;
    const auto doing =
        answer.statement.empty() ? std::string_view("the end of a transaction") : answer.statement;
    if (auto there = await_result(doing, stage, deadline); !there) {
      return first_error ? *first_error : there.error();
    }
    ResultOwner result(PQgetResult(connection_.get()), &PQclear);
    const auto status = PQresultStatus(result.get());
    if (status == PGRES_PIPELINE_SYNC) continue;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      if (answer.preparing) {
        prepared_.emplace(answer.statement);
      } else {
        rows.emplace_back(result.release());
      }
    } else if (status != PGRES_PIPELINE_ABORTED && !first_error) {
      const bool commit = answer.statement == commit_statement;
      first_error =
          take_error(result.get(), doing, commit ? Stage::commit : Stage::before_commit, stage);
      if (!connection_) return *first_error;
    }
    // The end of this statement's results.
    if (auto there = await_result(doing, stage, deadline); !there) {
      return first_error ? *first_error : there.error();
    }
    const ResultOwner end(PQgetResult(connection_.get()), &PQclear);
  }
  if (first_error) return *first_error;
  return rows;
}

Result<void> PostgresConnection::await_result(std::string_view doing, Stage when_lost,
                                              Deadline deadline) {
  auto* const connection = connection_.get();
  for (;;) {
    const int unsent = PQflush(connection);
    if (PQisBusy(connection) == 0) return {};
    const short events = static_cast<short>(unsent == 1 ? POLLIN | POLLOUT : POLLIN);
    if (!wait_for_socket(connection, events, deadline)) {
      close();
      return deadline_passed(doing, when_lost);
    }
    // A failure here does not end the loop: what the server said last may have been read before.
    if (PQconsumeInput(connection) == 0 && PQisBusy(connection) != 0) {
      return lost(doing, when_lost);
    }
  }
}

/// A failed result, and with it perhaps the end of the connection. The server's last word before it
/// closes has a state; an end without a word has none, and then nobody knows how far it came.
Error PostgresConnection::take_error(pg_result* result, std::string_view doing, Stage stage,
                                     Stage when_lost) {
  const std::string state(error_field(result, PG_DIAG_SQLSTATE));
  error_detail_ = error_field(result, PG_DIAG_MESSAGE_DETAIL);
  if (state.empty()) return lost(doing, when_lost);
  auto error = server_error(state, error_field(result, PG_DIAG_MESSAGE_PRIMARY),
                            error_field(result, PG_DIAG_CONSTRAINT_NAME), doing, stage);
  // After these, what was prepared is gone or wrong: a fresh session prepares it again.
  const bool forget = state.starts_with("26") || state == "0A000" || state.starts_with("57P");
  if (forget || PQstatus(connection_.get()) == CONNECTION_BAD) close();
  return error;
}

Error PostgresConnection::lost(std::string_view doing, Stage stage) {
  const std::string said = connection_ ? PQerrorMessage(connection_.get()) : "";
  close();
  return connection_lost(said, doing, stage);
}

}  // namespace postrider::store::postgres

#include "store/mariadb/mariadb_connection.hpp"

#include <fmt/format.h>
#include <mariadb/mysql.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>

#include "store/common/sql_names.hpp"
#include "store/mariadb/mariadb_url.hpp"
#include "store_mariadb_sql.hpp"

namespace postrider::store::mariadb {
namespace {

/// A rollback gets this long, also when the call's own time is over: less would cost a connection.
constexpr milliseconds rollback_patience{1000};
/// The server's own limit of a statement doubles from here until it covers the call's time.
constexpr std::int64_t least_statement_limit_ms = 125;
constexpr unsigned long least_version = 101'100;

/// READ COMMITTED: a poll must not lock the gaps that writers insert into. An IN list stays a list:
/// as a derived table it would be joined in an order of the optimizer's, and lock other rows.
constexpr const char* session_settings =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO',"
    " tx_isolation = 'READ-COMMITTED', time_zone = '+00:00', autocommit = 1,"
    " in_predicate_conversion_threshold = 0";

MYSQL* new_handle() {
  // The first call initializes the library, which is not safe from two threads.
  static std::once_flag once;
  std::call_once(once, [] { mysql_server_init(0, nullptr, nullptr); });
  return mysql_init(nullptr);
}

void set_options(MYSQL* handle, const Address& address) {
  mysql_optionsv(handle, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_optionsv(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_optionsv(handle, MYSQL_OPT_CONNECT_ATTR_RESET, nullptr);
  mysql_optionsv(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "postrider");
  my_bool reconnect = 0;
  mysql_optionsv(handle, MYSQL_OPT_RECONNECT, &reconnect);
  // The server may not ask us for files.
  unsigned int local_files = 0;
  mysql_optionsv(handle, MYSQL_OPT_LOCAL_INFILE, &local_files);
  my_bool tls = address.tls ? 1 : 0;
  mysql_optionsv(handle, MYSQL_OPT_SSL_ENFORCE, &tls);
  mysql_optionsv(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &tls);
  if (!address.tls_ca.empty()) mysql_optionsv(handle, MYSQL_OPT_SSL_CA, address.tls_ca.c_str());
}

Error refused(ErrorCode code, std::string message) {
  return {code, Disposition::stop, std::move(message), "mariadb", ""};
}

Result<void> check_partition_option(int partitions) {
  if (partitions >= 1 && partitions <= 1024) return {};
  return refused(ErrorCode::config_invalid,
                 fmt::format("there cannot be {} partitions. Choose 1 to 1024.", partitions));
}

}  // namespace

void MariadbConnection::CloseHandle::operator()(st_mysql* handle) const noexcept {
  mysql_close(handle);
}

MariadbConnection::MariadbConnection(MariadbOptions options)
    : options_(std::move(options)), deadline_(Deadline::after(milliseconds::zero())) {}

MariadbConnection::~MariadbConnection() = default;

Result<void> MariadbConnection::ready(Deadline deadline) {
  deadline_ = deadline;
  if (deadline.passed()) return deadline_passed("connect");
  if (handle_ != nullptr && closed_by_server()) abandon();
  if (handle_ == nullptr) {
    if (auto connected = connect(); !connected) {
      abandon();
      return connected;
    }
  }
  return limit_statements();
}

MariadbQuery MariadbConnection::query(std::string_view statement) {
  auto& text = rendered_[statement.data()];
  if (text.empty()) text = substitute_names(statement, options_.names);
  return {*this, text, statement_name(statement)};
}

Result<void> MariadbConnection::run_text(const std::string& sql, std::string_view doing) {
  if (auto done = execute(sql, doing, Phase::ordinary); !done) return done.error();
  return {};
}

Result<Timestamp> MariadbConnection::now(std::optional<Timestamp> given) {
  if (given) return *given;
  auto clock = query(sql::store_mariadb::clock_now);
  if (clock.next()) {
    if (const auto time = clock.time(0)) return *time;
  }
  if (auto read = clock.result(); !read) return read.error();
  return Error{ErrorCode::protocol, Disposition::retry,
               "the server told no time that can be read. Try again; if it stays, report it.",
               "mariadb", ""};
}

Result<ResultRows> MariadbConnection::execute(const std::string& sql, std::string_view doing) {
  return execute(sql, doing, Phase::ordinary);
}

Result<ResultRows> MariadbConnection::execute(const std::string& sql, std::string_view doing,
                                              Phase phase) {
  if (handle_ == nullptr) return mariadb_error(2006, "", doing, Phase::ordinary);
  if (most_packet_bytes_ > 0 && std::ssize(sql) >= most_packet_bytes_) {
    return Error{ErrorCode::limit_exceeded, Disposition::reject,
                 fmt::format("{}: the statement has {} bytes and the server takes fewer than {}. "
                             "Make the payload smaller, or raise max_allowed_packet.",
                             doing, sql.size(), most_packet_bytes_),
                 "mariadb", "1153"};
  }
  auto* const handle = handle_.get();
  int failure = 0;
  for (int wanted = mysql_real_query_start(&failure, handle, sql.data(), sql.size());
       wanted != 0;) {
    const auto came = await(wanted);
    if (!came) {
      abandon();
      return deadline_passed(doing, phase);
    }
    wanted = mysql_real_query_cont(&failure, handle, *came);
  }
  if (failure != 0) return failed(doing, phase);

  MYSQL_RES* rows = nullptr;
  for (int wanted = mysql_store_result_start(&rows, handle); wanted != 0;) {
    const auto came = await(wanted);
    if (!came) {
      abandon();
      return deadline_passed(doing, phase);
    }
    wanted = mysql_store_result_cont(&rows, handle, *came);
  }
  if (rows == nullptr && mysql_errno(handle) != 0) return failed(doing, phase);
  if (rows == nullptr) changes_ = static_cast<std::int64_t>(mysql_affected_rows(handle));
  return ResultRows(rows);
}

Result<void> MariadbConnection::connect() {
  if (auto checked = validate(options_.names, SchemaSupport::none); !checked) return checked;
  if (auto checked = check_partition_option(options_.partitions); !checked) return checked;
  const auto address = parse_url(options_.url);
  if (!address) return address.error();
  handle_.reset(new_handle());
  auto* const handle = handle_.get();
  set_options(handle, *address);
  const bool by_socket = !address->socket.empty();
  const char* const host = by_socket ? nullptr : address->host.c_str();
  const char* const socket = by_socket ? address->socket.c_str() : nullptr;
  MYSQL* connected = nullptr;
  for (int wanted = mysql_real_connect_start(
           &connected, handle, host, address->user.c_str(), address->password.c_str(),
           address->database.c_str(), by_socket ? 0 : address->port, socket, CLIENT_FOUND_ROWS);
       wanted != 0;) {
    const auto came = await(wanted);
    if (!came) return deadline_passed("connect");
    wanted = mysql_real_connect_cont(&connected, handle, *came);
  }
  if (connected == nullptr) return failed("connect", Phase::ordinary);
  statement_limit_ms_ = 0;
  ++session_;
  if (auto checked = check_server(); !checked) return checked;
  if (auto set = run_text(session_settings, "session settings"); !set) return set;
  return ask_packet_limit();
}

/// Past the limit the server cuts the connection, which would look like a network that fails again
/// and again.
Result<void> MariadbConnection::ask_packet_limit() {
  most_packet_bytes_ = 0;
  MariadbQuery limit(*this, "SELECT @@max_allowed_packet", "session settings");
  if (limit.next()) most_packet_bytes_ = limit.integer(0);
  return limit.result();
}

Result<void> MariadbConnection::check_server() {
  const std::string_view version = mysql_get_server_info(handle_.get());
  if (version.find("MariaDB") == std::string_view::npos) {
    return refused(ErrorCode::unsupported,
                   "the server is no MariaDB. Use MariaDB 10.11 or later: MySQL has no sequences.");
  }
  if (mysql_get_server_version(handle_.get()) < least_version) {
    return refused(ErrorCode::unsupported,
                   "the server is older than MariaDB 10.11. Use 10.11 or later.");
  }
  return {};
}

/// So that a statement whose caller has gone does not keep its locks.
Result<void> MariadbConnection::limit_statements() {
  const auto needed = deadline_.remaining().count();
  std::int64_t limit = least_statement_limit_ms;
  while (limit < needed)
    limit *= 2;
  if (limit == statement_limit_ms_) return {};
  const auto set =
      fmt::format("SET SESSION max_statement_time = {}.{:03}", limit / 1000, limit % 1000);
  if (auto done = run_text(set, "session settings"); !done) return done;
  statement_limit_ms_ = limit;
  return {};
}

Result<void> MariadbConnection::commit(Phase phase) {
  auto done = execute("COMMIT", "commit", phase);
  if (done) return {};
  // Some answers leave the transaction open.
  roll_back();
  return done.error();
}

void MariadbConnection::roll_back() noexcept {
  if (handle_ == nullptr) return;
  if (deadline_.remaining() < rollback_patience) deadline_ = Deadline::after(rollback_patience);
  if (!execute("ROLLBACK", "rollback", Phase::ordinary)) abandon();
}

/// Between two calls the server has nothing to say but that it leaves; under TLS there may be
/// records of the protocol itself.
bool MariadbConnection::closed_by_server() const {
  char byte = 0;
  const auto peeked = ::recv(mysql_get_socket(handle_.get()), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  return peeked == 0 || mysql_get_ssl_cipher(handle_.get()) == nullptr;
}

std::optional<int> MariadbConnection::await(int wanted) const {
  pollfd socket{mysql_get_socket(handle_.get()), 0, 0};
  if ((wanted & MYSQL_WAIT_READ) != 0) socket.events |= POLLIN;
  if ((wanted & MYSQL_WAIT_WRITE) != 0) socket.events |= POLLOUT;
  if ((wanted & MYSQL_WAIT_EXCEPT) != 0) socket.events |= POLLPRI;
  while (true) {
    auto patience = deadline_.remaining();
    bool library_gives_up = false;
    if ((wanted & MYSQL_WAIT_TIMEOUT) != 0) {
      const milliseconds limit(mysql_get_timeout_value_ms(handle_.get()));
      library_gives_up = limit < patience;
      patience = std::min(patience, limit);
    }
    constexpr milliseconds longest_poll{1'000'000};
    const int found = poll(&socket, 1, static_cast<int>(std::min(patience, longest_poll).count()));
    if (found == 0 && library_gives_up) return MYSQL_WAIT_TIMEOUT;
    if (found == 0 && deadline_.passed()) return std::nullopt;
    if (found <= 0) continue;  // Interrupted, or a very long time.
    int came = 0;
    if ((socket.revents & (POLLIN | POLLHUP | POLLERR)) != 0) came |= MYSQL_WAIT_READ;
    if ((socket.revents & (POLLOUT | POLLHUP | POLLERR)) != 0) came |= MYSQL_WAIT_WRITE;
    if ((socket.revents & POLLPRI) != 0) came |= MYSQL_WAIT_EXCEPT;
    return came & wanted;
  }
}

Error MariadbConnection::failed(std::string_view doing, Phase phase) {
  const auto native = mysql_errno(handle_.get());
  auto error = mariadb_error(native, mysql_error(handle_.get()), doing, phase);
  if (ends_connection(native)) abandon();
  return error;
}

void MariadbConnection::abandon() noexcept {
  if (handle_ == nullptr) return;
  // Closing says good-bye; on a dead network that would block.
  const auto socket = mysql_get_socket(handle_.get());
  if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
  handle_.reset();
}

}  // namespace postrider::store::mariadb

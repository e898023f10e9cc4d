#include "process/relay_line.hpp"

#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

#include "process/patience.hpp"
#include "servers/need_rabbitmq.hpp"

namespace postrider::testing {
namespace {

std::string address(const std::string& host, int port, int usual_port) {
  return host + ":" + std::to_string(port == 0 ? usual_port : port);
}

std::string configuration(const std::string& name, const PostgresDatabase& database,
                          const LineSettings& settings) {
  const auto store = address("127.0.0.1", settings.store_port, database.server().port());
  const auto broker =
      address(settings.broker_host, settings.broker_port, shared_rabbitmq().ports().amqp);
  return "store = \"postgresql://postgres@" + store + "/" + database.name() + "\"\n" +
         settings.relay + "\n[[routes]]\nname = \"all\"\nto = \"amqp://" + broker + "\"\n" +
         settings.route + "\n[routes.amqp]\nexchange = \"" + name + "\"\n" + settings.more;
}

Arrived arrived_of(const StoredMessage& message) {
  return {std::stoll(message.headers.at("postrider-seq")),
          message.headers.at("postrider-aggregate-id"), message.message_id, message.body};
}

}  // namespace

bool lacks_servers() {
  if (lacks_postgres()) return true;
  need_rabbitmq();
  return ::testing::Test::IsSkipped() || ::testing::Test::HasFailure();
}

LineSettings on_server(Postgres& server) {
  LineSettings settings;
  settings.server = &server;
  return settings;
}

RelayLine::RelayLine(std::string name, const LineSettings& settings)
    : name_(std::move(name)), database_({}, settings.server) {
  session().declare_exchange(name_);
  declare_queue();
  shop_.write("postrider.toml", configuration(name_, database_, settings));
}

RelayLine::~RelayLine() {
  try {
    session().delete_queue(name_);
    session().delete_exchange(name_);
  } catch (const std::runtime_error&) {
    // A test that failed while the broker was down; the queue has a name that no other test uses.
  }
}

DrainRun RelayLine::run() {
  DrainRun run;
  run.open_store = [this] { return database_.open_store(); };
  run.arrived = [this] { return arrived(); };
  run.progress = [this] { return arrived_.size() + waiting(); };
  return run;
}

std::unique_ptr<Running> RelayLine::start_relay(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"relay", "--loop"};
  all.insert(all.end(), words.begin(), words.end());
  return shop_.start(all);
}

std::string RelayLine::sql(const std::string& statement) const {
  return database_.open_session()->run(statement);
}

std::int64_t RelayLine::count(const std::string& statement) const {
  return std::stoll(sql("SELECT count(*) FROM " + statement));
}

const std::vector<Arrived>& RelayLine::arrived() {
  take_all();
  return arrived_;
}

void RelayLine::declare_queue() {
  session().declare_queue(name_);
  session().bind(name_, name_, "#");
}

RabbitmqSession& RelayLine::session() {
  if (!session_) session_.emplace(shared_rabbitmq().ports().amqp);
  return *session_;
}

std::size_t RelayLine::waiting() {
  try {
    return session().ready(name_);
  } catch (const std::runtime_error&) {
    session_.reset();
    return 0;
  }
}

void RelayLine::take_all() {
  try {
    for (const auto& message : session().take_all(name_))
      arrived_.push_back(arrived_of(message));
  } catch (const std::runtime_error&) {
    session_.reset();
  }
}

std::size_t count_of(const Running& relay, const std::string& kind) {
  const auto log = relay.err();
  const auto wanted = "\"kind\":\"" + kind + "\"";
  std::size_t count = 0;
  for (auto at = log.find(wanted); at != std::string::npos; at = log.find(wanted, at + 1))
    ++count;
  return count;
}

void expect_clean_stop(Running& relay) {
  relay.signal(SIGTERM);
  const auto finished = relay.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

bool tells(const Running& relay, const std::string& kind, std::size_t times) {
  return comes_true([&] { return count_of(relay, kind) >= times; });
}

}  // namespace postrider::testing

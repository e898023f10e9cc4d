// Calls one function of each component, so that its archives and what these need must be linked. A
// macro WITH_<component> says that the installation has it.

#include <iostream>
#include <memory>

#include <postrider/clock.hpp>
#include <postrider/event.hpp>
#include <postrider/publisher/amqp.hpp>
#include <postrider/publisher/file.hpp>
#include <postrider/publisher/http.hpp>
#include <postrider/relay.hpp>
#include <postrider/runner/exec.hpp>
#include <postrider/runner/http.hpp>
#include <postrider/runner/process.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/store/mariadb.hpp>
#include <postrider/store/postgres.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/memory_store.hpp>
#include <postrider/worker.hpp>

#if !defined(WITH_outbox) || !defined(WITH_relay) || !defined(WITH_file) || !defined(WITH_memory)
#error "a component that every installation has is missing"
#endif

namespace {

class SilentObserver final : public postrider::Observer {
 public:
  void notice(const postrider::Notice& /*notice*/) override {}
};

int passes_of_an_empty_store() {
  namespace kit = postrider::testing;
  postrider::Route route;
  route.name = "out";
  std::vector<postrider::RouteBinding> routes;
  routes.push_back({route, kit::make_memory_publisher(std::make_shared<kit::Journal>())});
  const auto random = postrider::system_random();
  SilentObserver observer;
  postrider::Relay relay(kit::make_memory_store(kit::make_memory_database()), std::move(routes), {},
                         postrider::system_clock(), *random, observer);
  return relay.run_once().ok() ? 1 : 0;
}

#ifdef WITH_runners
int stops_of_a_worker() {
  namespace kit = postrider::testing;
  const auto database = kit::make_memory_database();
  postrider::WorkerOptions options;
  options.queues = {{"shipping", 1}};
  const auto random = postrider::system_random();
  SilentObserver observer;
  postrider::Handlers handlers;
  handlers.bind("ship_order", [] {});
  const bool in_threads = random->next() % 2 == 0;
  const auto runner = [&](postrider::AttemptDesk& desk) {
    return in_threads ? postrider::make_thread_runner(handlers, 1, desk)
                      : postrider::make_process_runner(handlers, 1, desk);
  };
  postrider::Worker worker([&] { return kit::make_memory_job_store(database); }, runner, options,
                           postrider::system_clock(), *random, observer);
  worker.request_stop();
  return worker.run().ok() ? 1 : 0;
}
#endif

}  // namespace

int main() {
  int made = passes_of_an_empty_store();
  made += postrider::make_file_publisher({}) != nullptr ? 1 : 0;
#ifdef WITH_sqlite
  made += postrider::make_sqlite_store({}) != nullptr ? 1 : 0;
#endif
#ifdef WITH_postgres
  made += postrider::make_postgres_store({}) != nullptr ? 1 : 0;
#endif
#ifdef WITH_mariadb
  made += postrider::make_mariadb_store({}) != nullptr ? 1 : 0;
#endif
#ifdef WITH_amqp
  postrider::AmqpOptions amqp;
  amqp.url = "amqp://127.0.0.1:1";
  made += postrider::make_amqp_publisher(amqp) != nullptr ? 1 : 0;
#endif
#ifdef WITH_http
  postrider::HttpOptions http;
  http.url = "https://hook.example/";
  made += postrider::make_http_publisher(http) != nullptr ? 1 : 0;
#endif
#ifdef WITH_runners
  made += stops_of_a_worker();
  postrider::ExecOptions command;
  command.command = {"true"};
  made += postrider::make_exec_runner(command) != nullptr ? 1 : 0;
  postrider::HttpRunnerOptions endpoint;
  endpoint.url = "http://127.0.0.1:1/";
  made += postrider::make_http_runner(endpoint) != nullptr ? 1 : 0;
#endif
  std::cout << made << " parts\n";
  return made >= 2 ? 0 : 1;
}

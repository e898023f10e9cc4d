// One order asks for three jobs, and each ends by itself: one completes at its second attempt, one
// fails for good, and one takes its process with it. None holds up another.

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <postrider/handlers.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/relay.hpp>
#include <postrider/runner/process.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/worker.hpp>

#include "common/database.hpp"
#include "common/order_events.hpp"
#include "common/silent_observer.hpp"
#include "common/sudden_death.hpp"
#include "common/temporary_folder.hpp"
#include "common/text_table.hpp"

namespace {

using namespace std::chrono_literals;
using examples::OrderPlaced;
using postrider::Deadline;
using postrider::DeliveryStatus;
using postrider::Handlers;
using postrider::JobDetail;
using postrider::JobOutcome;
using postrider::Result;
using postrider::Route;

constexpr std::size_t processes = 3;
constexpr auto store_patience = 10s;
constexpr auto patience = 60s;  // For all three to end.
constexpr auto look_again = 5ms;

// [handlers]
Handlers make_handlers() {
  Handlers handlers;
  handlers.bind("ship_order", [](const OrderPlaced&, postrider::Attempt& attempt) {
    if (attempt.number() == 1) throw postrider::RetryableError("carrier_busy");
  });
  handlers.bind("send_invoice", [](const OrderPlaced&) {
    return JobOutcome::fail("no_address", "ask the customer for one");
  });
  handlers.bind("print_label", [](const OrderPlaced&) { examples::die_at_once(); });
  return handlers;
}
// [handlers]

// [routes]
Route job_route(const std::string& job, const std::string& queue,
                const std::vector<postrider::milliseconds>& retry_delays) {
  postrider::JobPolicy policy;
  policy.job = job;
  policy.queue = queue;
  policy.on_worker_death = postrider::OnWorkerDeath::fail;  // It may have printed: ask a person.
  auto route = postrider::job_route(job, {"order.placed"}, policy);
  route.retry_delays = retry_delays;
  return route;
}

std::vector<Route> make_routes() {
  return {job_route("ship_order", "shipping", {20ms, 50ms}),
          job_route("send_invoice", "mail", {1s, 5s, 30s}),
          job_route("print_label", "printing", {100ms})};
}
// [routes]

void place_order(const std::string& path) {
  examples::Database database(path);
  database.script("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL) STRICT");
  examples::value_or_throw(postrider::unit_of_work(
      database.handle(), [&](postrider::Outbox& outbox) -> Result<postrider::EventId> {
        database.run("INSERT INTO orders (id, item) VALUES (1, 'lamp')");
        const auto event =
            make_event(OrderPlaced{1, "lamp", 1, 2500}, examples::order_aggregate(1));
        if (!event) return event.error();
        return outbox.add(*event);
      }));
  std::cout << "Order 1 is placed: one event.\n";
}

/// One pass of a relay, as `postrider relay` does it. Tells how many jobs it has made.
std::size_t run_relay(const std::string& path) {
  std::vector<postrider::RouteBinding> bindings;
  for (auto& route : make_routes())
    bindings.push_back({std::move(route), nullptr});
  const auto random = postrider::system_random();
  examples::SilentObserver observer;
  postrider::Relay relay(postrider::make_sqlite_store({path, {}}), std::move(bindings), {},
                         postrider::system_clock(), *random, observer);
  const auto jobs = examples::value_or_throw(relay.run_once()).jobs;
  std::cout << "The relay makes " << jobs << " jobs of it.\n";
  return jobs;
}

/// The worker of all three queues. Its processes are forked where it is made, so that comes before
/// any thread and any connection.
class Desk {
 public:
  explicit Desk(const std::string& path)
      : worker_(
            [path] {
              return postrider::make_sqlite_job_store({path, {}});
            },
            [](postrider::AttemptDesk& desk) {
              return postrider::make_process_runner(make_handlers(), processes, desk);
            },
            options(), postrider::system_clock(), *random_, observer_) {}
  ~Desk() {
    worker_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  void open() {
    thread_ = std::thread([this] { report_ = worker_.run(); });
  }
  postrider::WorkerReport close() {
    worker_.request_stop();
    thread_.join();
    return examples::value_or_throw(std::move(report_));
  }

 private:
  static postrider::WorkerOptions options() {
    postrider::WorkerOptions options;
    options.name = "three-jobs";
    options.queues = {{"shipping", 1}, {"mail", 1}, {"printing", 1}};
    options.concurrency = processes;
    return options;
  }

  std::unique_ptr<postrider::Random> random_ = postrider::system_random();
  examples::SilentObserver observer_;
  Result<postrider::WorkerReport> report_ = postrider::WorkerReport{};
  postrider::Worker worker_;
  std::thread thread_;
};

using JobsByName = std::map<std::string, JobDetail>;

JobsByName look(postrider::JobOperations& operations) {
  JobsByName jobs;
  for (auto& job :
       examples::value_or_throw(operations.jobs({}, Deadline::after(store_patience))).jobs) {
    const auto name = job.job;
    jobs.emplace(name, std::move(job));
  }
  return jobs;
}

bool all_ended(const JobsByName& jobs) {
  for (const auto& [name, job] : jobs) {
    const auto status = job.delivery.status;
    if (status == DeliveryStatus::pending || status == DeliveryStatus::dispatched) return false;
  }
  return true;
}

JobsByName await_ends(const std::string& path) {
  const auto operations = postrider::make_sqlite_job_operations({path, {}});
  const auto deadline = Deadline::after(patience);
  auto jobs = look(*operations);
  while (!all_ended(jobs) && !deadline.passed()) {
    std::this_thread::sleep_for(look_again);
    jobs = look(*operations);
  }
  return jobs;
}

std::string text_of(const std::vector<postrider::milliseconds>& delays) {
  std::string text;
  for (const auto delay : delays)
    text += (text.empty() ? "" : ", ") + std::to_string(delay.count());
  return text;
}

void tell(const JobsByName& jobs) {
  std::vector<examples::TableRow> table{{"job", "queue", "retry delays (ms)", "status",
                                         "failed attempts", "deaths", "code", "detail"}};
  for (const auto& route : make_routes()) {
    const auto& job = jobs.at(route.job->job);
    const auto& delivery = job.delivery;
    table.push_back({job.job, job.queue, text_of(delivery.retry_delays),
                     std::string(to_string(delivery.status)), std::to_string(delivery.attempts),
                     std::to_string(job.deaths), delivery.failure_code, delivery.failure_detail});
  }
  examples::print_table(std::cout, table);
}

bool ended_as(const JobDetail& job, DeliveryStatus status, std::string_view code, int deaths) {
  return job.delivery.status == status && job.deaths == deaths &&
         (status == DeliveryStatus::completed || job.delivery.failure_code == code);
}

bool is_as_promised(const JobsByName& jobs) {
  return ended_as(jobs.at("ship_order"), DeliveryStatus::completed, {}, 0) &&
         jobs.at("ship_order").delivery.attempts == 1 &&
         ended_as(jobs.at("send_invoice"), DeliveryStatus::failed, "no_address", 0) &&
         ended_as(jobs.at("print_label"), DeliveryStatus::failed, postrider::job_code::worker_died,
                  1);
}

bool run_story() {
  const examples::TemporaryFolder folder;
  const auto path = folder.file("shop.db");
  examples::create_postrider_tables(path);
  Desk desk(path);
  place_order(path);
  const auto made = run_relay(path);
  desk.open();
  const auto jobs = await_ends(path);
  const auto report = desk.close();
  std::cout << "A worker with " << processes << " processes runs them.\n\n";
  tell(jobs);
  return made == jobs.size() && is_as_promised(jobs) && report.clean();
}

}  // namespace

int main() {
  try {
    const bool kept = run_story();
    std::cout << (kept ? "\nEvery promise was kept.\n" : "\nA promise was BROKEN.\n");
    return kept ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "three_jobs: " << error.what() << '\n';
    return 70;
  }
}

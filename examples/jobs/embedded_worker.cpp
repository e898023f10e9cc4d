// A service that does its jobs itself: parcels come in over HTTP, and a worker in the same process
// prints their labels. No other process is needed, and nothing is lost when this one dies: what is
// to be done stands in its database.
//
//     embedded_worker --database parcels.db --port 8080
//     curl -d '{"item":"lamp"}' localhost:8080/parcels
//     curl localhost:8080/parcels

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <postrider/handlers.hpp>
#include <postrider/relay.hpp>
#include <postrider/runner/thread.hpp>
#include <postrider/sqlite.hpp>
#include <postrider/store/sqlite.hpp>
#include <postrider/typed_event.hpp>
#include <postrider/worker.hpp>

#include "common/database.hpp"
#include "common/http.hpp"
#include "common/options.hpp"
#include "common/silent_observer.hpp"

namespace parcels {

struct ParcelOrdered {
  std::int64_t parcelId = 0;
  std::string item;
};
POSTRIDER_EVENT(ParcelOrdered, "parcel.ordered", parcelId, item)

namespace {

using namespace std::chrono_literals;
using examples::Database;
using examples::DatabaseError;
using examples::HttpRequest;
using examples::HttpResponse;
using Json = nlohmann::ordered_json;
using postrider::Result;

constexpr std::size_t most_item_bytes = 100;
constexpr std::int64_t most_listed = 100;
constexpr std::size_t threads = 2;

/// The HTTP side, with a connection of its own. Thread safety: one thread at a time.
class ParcelApi {
 public:
  explicit ParcelApi(const std::string& path)
      : database_((examples::create_postrider_tables(path), path)) {
    database_.script(
        "CREATE TABLE IF NOT EXISTS parcels (id INTEGER PRIMARY KEY, item TEXT NOT NULL,"
        "  label TEXT) STRICT");
  }

  HttpResponse handle(const HttpRequest& request) {
    if (request.target != "/parcels") return problem(404, "Only /parcels is here.");
    if (request.method == "GET") return list();
    if (request.method == "POST") return order(request.body);
    return {405,
            Json{{"error", "Only GET and POST are known."}}.dump() + "\n",
            {{"allow", "GET, POST"}}};
  }

 private:
  static HttpResponse problem(int status, const std::string& message) {
    return {status, Json{{"error", message}}.dump() + "\n", {}};
  }

  static std::optional<std::string> item_in(const std::string& body) {
    const auto json = Json::parse(body, nullptr, false);
    if (!json.is_object() || json.size() != 1 || !json.contains("item")) return std::nullopt;
    const auto& item = json["item"];
    if (!item.is_string()) return std::nullopt;
    const auto bytes = item.get_ref<const std::string&>().size();
    if (bytes == 0 || bytes > most_item_bytes) return std::nullopt;
    return item.get<std::string>();
  }

  HttpResponse order(const std::string& body) {
    const auto item = item_in(body);
    if (!item) return problem(422, "Send {\"item\":\"…\"}, a text of 1 to 100 bytes.");
    const auto id = insert(*item);
    if (!id && id.error().disposition == postrider::Disposition::retry) {
      return problem(503, "The database is busy. Send the request again.");
    }
    return {201, Json{{"parcelId", examples::value_or_throw(id)}}.dump() + "\n", {}};
  }

  // [order]
  /// The parcel and the event that asks for its label: both or neither.
  Result<std::int64_t> insert(const std::string& item) {
    return postrider::unit_of_work(
        database_.handle(), [&](postrider::Outbox& outbox) -> Result<std::int64_t> {
          const auto id =
              database_.number("INSERT INTO parcels (item) VALUES (?) RETURNING id", {item});
          const auto event =
              postrider::make_event(ParcelOrdered{id, item}, {{"parcel", std::to_string(id)}});
          if (!event) return event.error();
          if (const auto added = outbox.add(*event); !added) return added.error();
          return id;
        });
  }
  // [order]

  HttpResponse list() {
    auto json = Json::array();
    for (const auto& row : database_.run(
             "SELECT id, item, label FROM parcels ORDER BY id DESC LIMIT ?", {most_listed})) {
      json.push_back({{"parcelId", std::stoll(row[0])}, {"item", row[1]}, {"label", row[2]}});
    }
    return {200, json.dump() + "\n", {}};
  }

  Database database_;
};

// [handler]
/// Several attempts run at a time, so each has a connection of its own. One that is repeated, as
/// the process died before the result was recorded, finds the label there and changes nothing.
void print_label(const std::string& path, const ParcelOrdered& parcel) {
  try {
    Database database(path);
    database.run("UPDATE parcels SET label = ? WHERE id = ? AND label IS NULL",
                 {"LABEL-" + std::to_string(parcel.parcelId), parcel.parcelId});
  } catch (const DatabaseError&) {
    throw postrider::RetryableError("database_busy");
  }
}

postrider::Handlers make_handlers(const std::string& path) {
  postrider::Handlers handlers;
  handlers.bind("print_label", [path](const ParcelOrdered& parcel) { print_label(path, parcel); });
  return handlers;
}
// [handler]

std::vector<postrider::RouteBinding> make_routes() {
  postrider::JobPolicy policy;
  policy.job = "print_label";
  policy.queue = "labels";
  policy.on_worker_death = postrider::OnWorkerDeath::retry;  // Repeating it is harmless.
  std::vector<postrider::RouteBinding> routes(1);
  routes[0].route = postrider::job_route("labels", {"parcel.ordered"}, policy);
  return routes;
}

// [printing]
/// Makes jobs of events, and runs them, beside the server: from its making until `stop`.
class LabelPrinting {
 public:
  /// Calls `give_up`, from another thread, when it cannot go on.
  LabelPrinting(const std::string& path, const std::function<void()>& give_up)
      : relay_(postrider::make_sqlite_store({path, {}}), make_routes(), relay_options(),
               postrider::system_clock(), *relay_random_, observer_, nullptr,
               postrider::make_sqlite_job_store({path, {}})),
        worker_(
            [path] {
              return postrider::make_sqlite_job_store({path, {}});
            },
            [path](postrider::AttemptDesk& desk) {
              return postrider::make_thread_runner(make_handlers(path), threads, desk);
            },
            worker_options(), postrider::system_clock(), *worker_random_, observer_),
        relay_thread_([this, give_up] {
          relay_report_ = relay_.run();
          if (!relay_report_) give_up();
        }),
        worker_thread_([this, give_up] {
          worker_report_ = worker_.run();
          if (!worker_report_) give_up();
        }) {}
  ~LabelPrinting() { end(); }
  LabelPrinting(const LabelPrinting&) = delete;
  LabelPrinting& operator=(const LabelPrinting&) = delete;

  /// Waits for what runs; what is not begun stays in the database. Throws why it has given up.
  bool stop() {
    end();
    return examples::value_or_throw(relay_report_).clean &&
           examples::value_or_throw(worker_report_).clean();
  }

 private:
  static postrider::RelayOptions relay_options() {
    postrider::RelayOptions options;
    options.name = "parcels";
    options.sleep = 100ms;
    return options;
  }
  static postrider::WorkerOptions worker_options() {
    postrider::WorkerOptions options;
    options.name = "parcels";
    options.queues = {{"labels", 1}};
    options.concurrency = threads;
    return options;
  }
  void end() {
    relay_.request_stop();
    worker_.request_stop();
    if (relay_thread_.joinable()) relay_thread_.join();
    if (worker_thread_.joinable()) worker_thread_.join();
  }

  std::unique_ptr<postrider::Random> relay_random_ = postrider::system_random();
  std::unique_ptr<postrider::Random> worker_random_ = postrider::system_random();
  examples::SilentObserver observer_;
  Result<postrider::LoopReport> relay_report_ = postrider::LoopReport{};
  Result<postrider::WorkerReport> worker_report_ = postrider::WorkerReport{};
  postrider::Relay relay_;
  postrider::Worker worker_;
  std::thread relay_thread_;
  std::thread worker_thread_;
};
// [printing]

int serve(const examples::Options& given) {
  const auto path = given.required("--database");
  ParcelApi api(path);
  examples::HttpServerOptions listen;
  listen.port = given.port("--port");
  examples::HttpServer server(listen, [&](const auto& request) { return api.handle(request); });
  LabelPrinting printing(path, [&] { server.stop(); });
  std::cout << "parcels: listening on http://127.0.0.1:" << server.port() << std::endl;
  server.run();  // Until SIGTERM or SIGINT.
  const bool clean = printing.stop();
  std::cout << (clean ? "parcels: stopped\n" : "parcels: stopped; the next start goes on\n");
  return clean ? 0 : 1;
}

}  // namespace
}  // namespace parcels

int main(int argc, char** argv) {
  try {
    return parcels::serve(examples::Options(argc, argv, {"--database", "--port"}, {}));
  } catch (const examples::UsageError& error) {
    std::cerr << "embedded_worker: " << error.what()
              << ". Usage: embedded_worker --database FILE [--port PORT]\n";
    return 64;
  } catch (const std::exception& error) {
    std::cerr << "embedded_worker: " << error.what() << '\n';
    return 70;
  }
}

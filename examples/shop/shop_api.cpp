#include "shop/shop_api.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include <postrider/sqlite.hpp>

#include "shop/orders.hpp"

namespace examples::shop {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_item_bytes = 100;
constexpr std::int64_t most_quantity = 1000;
constexpr std::size_t most_key_bytes = 255;

/// What is wrong with a request; becomes its answer.
struct Problem {
  int status;
  std::string error;
  std::string message;
  std::string field = {};
};

HttpResponse response_of(const Problem& problem) {
  Json json{{"error", problem.error}, {"message", problem.message}};
  if (!problem.field.empty()) json["field"] = problem.field;
  return {problem.status, json.dump() + "\n", {}};
}

HttpResponse response_of(int status, const Order& order) {
  const Json json{{"orderId", order.id},
                  {"item", order.item},
                  {"quantity", order.quantity},
                  {"totalCents", order.total_cents},
                  {"status", order.status}};
  return {status, json.dump() + "\n", {{"location", "/orders/" + std::to_string(order.id)}}};
}

Problem problem_of(const Refusal& refusal) {
  switch (refusal.reason()) {
    case Refusal::Reason::unknown_order:
      return {404, "unknown_order", refusal.what()};
    case Refusal::Reason::unknown_item:
      return {422, "unknown_item", refusal.what(), "item"};
    case Refusal::Reason::sold_out:
      return {409, "sold_out", refusal.what(), "quantity"};
    case Refusal::Reason::wrong_status:
      return {409, "wrong_status", refusal.what()};
  }
  return {500, "internal", "The shop could not do it."};
}

HttpResponse response_of(const postrider::Error& error) {
  if (error.disposition == postrider::Disposition::retry) {
    return response_of(Problem{503, "busy", "The shop is busy. Send the request again."});
  }
  throw std::runtime_error(describe(error));
}

Problem invalid(const std::string& field, const std::string& message) {
  return {422, "invalid_order", message, field};
}

std::optional<Problem> check_members(const Json& json) {
  if (!json.is_object()) return Problem{422, "invalid_order", "The body is no JSON object."};
  for (const auto& [name, value] : json.items()) {
    if (name != "item" && name != "quantity") {
      return Problem{422, "invalid_order", "Only item and quantity are known."};
    }
  }
  const auto item = json.find("item");
  if (item == json.end() || !item->is_string()) return invalid("item", "item is a text.");
  const auto bytes = item->get_ref<const std::string&>().size();
  if (bytes == 0 || bytes > most_item_bytes) {
    return invalid("item", "item has 1 to " + std::to_string(most_item_bytes) + " bytes.");
  }
  const auto quantity = json.find("quantity");
  // is_number_integer() holds for numbers beyond 64 signed bits, too; these are unsigned.
  const bool in_range = quantity != json.end() && quantity->is_number_integer() && *quantity >= 1 &&
                        *quantity <= most_quantity;
  if (!in_range) {
    return invalid("quantity",
                   "quantity is a whole number from 1 to " + std::to_string(most_quantity) + ".");
  }
  return std::nullopt;
}

std::optional<Problem> check_order(const HttpRequest& request) {
  const auto type = request.headers.find("content-type");
  if (type == request.headers.end() || !type->second.starts_with("application/json")) {
    return Problem{415, "unsupported_type", "Send Content-Type: application/json."};
  }
  const auto json = Json::parse(request.body, nullptr, false);
  if (json.is_discarded()) return Problem{400, "invalid_json", "The body is no JSON."};
  return check_members(json);
}

/// What one POST is to do, once it is in a transaction.
using Work = std::function<HttpResponse(Database&)>;

/// The order of "/orders/{id}/{verb}", of "/orders/{id}" when the verb is empty.
std::optional<std::int64_t> order_in(std::string_view target, std::string_view verb) {
  constexpr std::string_view prefix = "/orders/";
  const std::string suffix = verb.empty() ? "" : "/" + std::string(verb);
  if (!target.starts_with(prefix) || !target.ends_with(suffix)) return std::nullopt;
  if (target.size() <= prefix.size() + suffix.size()) return std::nullopt;
  const auto digits = target.substr(prefix.size(), target.size() - prefix.size() - suffix.size());
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return id;
}

std::optional<Work> work_of(const HttpRequest& request) {
  if (request.target == "/orders") {
    return [body = request.body](Database& database) {
      const auto json = Json::parse(body);
      return response_of(201, place_order(database, json["item"], json["quantity"]));
    };
  }
  if (const auto id = order_in(request.target, "payment")) {
    return [id](Database& database) { return response_of(200, pay_order(database, *id)); };
  }
  if (const auto id = order_in(request.target, "shipment")) {
    return [id](Database& database) { return response_of(200, ship_order(database, *id)); };
  }
  return std::nullopt;
}

std::string key_of(const HttpRequest& request) {
  const auto found = request.headers.find("idempotency-key");
  return found == request.headers.end() ? std::string() : found->second;
}

bool is_usable_key(const std::string& key) {
  return key.size() <= most_key_bytes &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// The answer to the request that used the key before, if one did.
std::optional<HttpResponse> earlier_answer(Database& database, const HttpRequest& request) {
  const auto rows = database.run("SELECT target, body, status, answer FROM requests WHERE key = ?",
                                 {key_of(request)});
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  if (row[0] != request.target || row[1] != request.body) {
    return response_of(Problem{422, "key_reused",
                               "This Idempotency-Key came with another request. Use a new one."});
  }
  return HttpResponse{std::stoi(row[2]), row[3], {{"idempotency-replayed", "true"}}};
}

void keep_answer(Database& database, const HttpRequest& request, const HttpResponse& response) {
  database.run("DELETE FROM requests WHERE created_at < unixepoch() - 24 * 60 * 60");
  database.run("INSERT INTO requests (key, target, body, status, answer) VALUES (?, ?, ?, ?, ?)",
               {key_of(request), request.target, request.body, response.status, response.body});
}

// [once]
/// The request's work, its event and the memory that it was done: one transaction. Two requests
/// with one key cannot both get in, as SQLite lets one transaction write at a time.
postrider::Result<HttpResponse> do_once(Database& database, const HttpRequest& request,
                                        const Work& work) {
  return postrider::transaction(database.handle(), [&] {
    if (key_of(request).empty()) return work(database);
    if (const auto earlier = earlier_answer(database, request)) return *earlier;
    auto response = work(database);
    keep_answer(database, request, response);
    return response;
  });
}
// [once]

}  // namespace

ShopApi::ShopApi(const std::string& database_path)
    : database_((create_postrider_tables(database_path), database_path)) {
  create_shop_tables(database_);
  database_.script(
      "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, target TEXT NOT NULL,"
      "  body TEXT NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL,"
      "  created_at INTEGER NOT NULL DEFAULT (unixepoch())) STRICT;"
      "CREATE INDEX IF NOT EXISTS requests_by_age ON requests (created_at)");
}

HttpResponse ShopApi::handle(const HttpRequest& request) {
  if (request.method == "POST") return post(request);
  if (request.method == "GET") return get(request);
  auto response = response_of(Problem{405, "method_not_allowed", "Only GET and POST are known."});
  response.headers["allow"] = "GET, POST";
  return response;
}

HttpResponse ShopApi::post(const HttpRequest& request) {
  const auto work = work_of(request);
  if (!work) return response_of(Problem{404, "unknown_path", "There is nothing here."});
  if (!is_usable_key(key_of(request))) {
    return response_of(
        Problem{400, "invalid_key", "Idempotency-Key has 1 to 255 printable ASCII characters."});
  }
  if (request.target == "/orders") {
    if (const auto problem = check_order(request)) return response_of(*problem);
  }
  try {
    const auto response = do_once(database_, request, *work);
    return response ? response.value() : response_of(response.error());
  } catch (const Refusal& refusal) {
    return response_of(problem_of(refusal));
  }
}

HttpResponse ShopApi::get(const HttpRequest& request) {
  const auto id = order_in(request.target, "");
  const auto order = id ? find_order(database_, *id) : std::nullopt;
  if (!order) return response_of(Problem{404, "unknown_order", "There is no such order."});
  return response_of(200, *order);
}

}  // namespace examples::shop

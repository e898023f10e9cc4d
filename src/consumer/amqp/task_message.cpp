// Read by events of the parser, as a document would let repeated members pass.
#include "consumer/amqp/task_message.hpp"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "values/job_check.hpp"

namespace postrider::amqp {
namespace {

constexpr std::string_view event_member = "outbox_event_id";
constexpr std::string_view delivery_member = "outbox_delivery_id";
constexpr std::string_view dispatch_member = "outbox_dispatch_id";

using Members = std::map<std::string, std::string, std::less<>>;

Error no_task(std::string reason) {
  return {ErrorCode::invalid_argument, Disposition::reject, std::move(reason), "task", ""};
}

// nlohmann's interface of a SAX parser; a function that returns false ends the parse. Texts of the
// outermost object are kept, whatever else there is is passed over.
class TaskReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return is_inside(); }
  bool boolean(bool) { return is_inside(); }
  bool number_integer(number_integer_t) { return is_inside(); }
  bool number_unsigned(number_unsigned_t) { return is_inside(); }
  bool number_float(number_float_t, const string_t&) { return is_inside(); }
  bool binary(binary_t&) { return false; }
  bool start_array(std::size_t) { return is_inside() && enter(); }
  bool end_array() { return leave(); }
  bool start_object(std::size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool key(string_t& name) {
    member_ = name;
    return true;
  }
  bool string(string_t& text) {
    if (!is_inside()) return false;
    return depth_ > 1 || members_.emplace(member_, std::move(text)).second;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    return false;
  }

  [[nodiscard]] const Members& members() const { return members_; }

 private:
  [[nodiscard]] bool is_inside() const { return depth_ > 0; }
  bool enter() {
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string member_;
  Members members_;
};

Result<Uuid> id_of(const Members& members, std::string_view name) {
  const auto found = members.find(name);
  if (found != members.end()) {
    if (auto id = Uuid::parse(found->second)) return id;
  }
  return no_task(fmt::format("its {} is missing or is no UUID", name));
}

Result<void> check_type(std::string_view type) {
  std::vector<std::string> faults;
  check_job_name(faults, type);
  if (faults.empty()) return {};
  return no_task("its property 'type' is no name of a job");
}

}  // namespace

Error task_too_big() {
  return no_task(fmt::format("its body has more than {} bytes", most_task_bytes));
}

Result<Ticket> read_task(std::string_view type, std::string_view body) {
  if (body.size() > most_task_bytes) return task_too_big();
  TaskReader reader;
  if (!nlohmann::json::sax_parse(body, &reader)) {
    return no_task("its body is no JSON object, or names a member twice");
  }
  const auto event = id_of(reader.members(), event_member);
  if (!event) return event.error();
  const auto delivery = id_of(reader.members(), delivery_member);
  if (!delivery) return delivery.error();
  const auto dispatch = id_of(reader.members(), dispatch_member);
  if (!dispatch) return dispatch.error();
  if (auto named = check_type(type); !named) return std::move(named).error();
  Ticket ticket;
  ticket.delivery_id = DeliveryId(*delivery);
  ticket.dispatch_id = DispatchId(*dispatch);
  ticket.job = type;
  return ticket;
}

}  // namespace postrider::amqp

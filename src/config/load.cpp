#include "config/load.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "config/check.hpp"
#include "config/document.hpp"
#include "config/keys.hpp"
#include "config/schedule_check.hpp"
#include "config/suggestion.hpp"

namespace postrider::config {
namespace {

constexpr std::size_t most_file_bytes = 1U << 20U;

class Loader {
 public:
  explicit Loader(const LoadRequest& request) : request_(&request) {}

  Loaded run() {
    if (request_->path) read_file(*request_->path);
    read_environment();
    for (const auto& override : request_->overrides)
      read_override(override);
    read_worker_queues();
    check_relay();
    check_worker();
    check_routes();
    check_schedules();
    return std::move(loaded_);
  }

 private:
  void problem(std::string origin, std::string message) {
    loaded_.problems.push_back({std::move(origin), std::move(message)});
  }

  std::string at(int line) const {
    return line > 0 ? fmt::format("{}:{}", *request_->path, line) : *request_->path;
  }

  void read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(most_file_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (!file.is_open() || file.bad()) {
      return problem(path,
                     "the file cannot be read. Check its path and rights, or write one with "
                     "`postrider init`.");
    }
    if (text.size() > most_file_bytes) {
      return problem(path, "the file is larger than 1 MiB. Is it a configuration?");
    }
    const auto document = read_document(text);
    if (!document.fault.empty()) {
      return problem(at(document.fault_line),
                     document.fault + ". Correct the line; the file is written in TOML.");
    }
    read(document);
  }

  void read(const Document& document) {
    route_lines_ = document.route_lines;
    route_has_problem_.assign(route_lines_.size(), false);
    loaded_.settings.routes.resize(route_lines_.size());
    route_names_.resize(route_lines_.size());
    schedules_.resize(document.schedule_lines.size());
    loaded_.settings.schedules.resize(schedules_.size());
    for (std::size_t i = 0; i < schedules_.size(); ++i)
      schedules_[i].line = document.schedule_lines[i];
    for (const auto& entry : document.entries)
      read_entry(entry);
    for (std::size_t i = 0; i < route_lines_.size(); ++i) {
      check_required(i);
      if (!route_has_problem_[i]) check_kind(i);
      if (route_names_[i].count("job") != 0) make_job_route(i);
    }
    for (auto& schedule : schedules_)
      check_required(schedule);
  }

  void read_entry(const Entry& entry) {
    const auto before = loaded_.problems.size();
    const auto* key = find_key(entry.section, entry.name);
    if (key == nullptr) {
      problem(at(entry.line), unknown_key(entry));
    } else {
      set(*key, entry.value, entry.element, at(entry.line));
    }
    if (entry.element < 0) return;
    const auto element = static_cast<std::size_t>(entry.element);
    const bool faulty = loaded_.problems.size() > before;
    if (entry.section == "schedules") {
      schedules_[element].key_lines.emplace(entry.name, entry.line);
      schedules_[element].faulty |= faulty;
      return;
    }
    if (entry.section == "routes") route_names_[element].emplace(entry.name, entry.line);
    if (faulty) route_has_problem_[element] = true;
  }

  static std::string unknown_key(const Entry& entry) {
    const auto name = entry.section.empty() ? entry.name : entry.section + "." + entry.name;
    if (name == "routes" || name == "schedules") {
      return fmt::format("{} are given one by one. Write [[{}]] above each.", name, name);
    }
    if (is_section(name)) {
      return fmt::format("{} is a table. Write [{}] above its keys.", name, name);
    }
    return fmt::format("{} is unknown. {}", name, advice(entry));
  }

  // The nearest name in the same table, then the same name in another one.
  static std::string advice(const Entry& entry) {
    std::vector<std::string> names;
    for (const auto& key : all_keys()) {
      if (key.section == entry.section) names.push_back(key.name);
      const auto dot = key.section.rfind('.');
      if (entry.section.empty() && dot == std::string::npos) names.push_back(key.section);
    }
    std::erase(names, "");
    if (const auto near = nearest(entry.name, names)) {
      return fmt::format("Did you mean {}?", *near);
    }
    for (const auto& key : all_keys()) {
      if (key.name == entry.name && !key.section.empty()) {
        const bool many = key.section == "routes" || key.section == "schedules";
        return fmt::format("Move it below {}.",
                           many ? "[[" + key.section + "]]" : "[" + key.section + "]");
      }
    }
    return "Remove it, or look it up in docs/operate/configuration.md.";
  }

  void read_environment() {
    for (const auto& key : all_keys()) {
      const auto name = environment_name(key);
      if (name.empty()) continue;
      if (const auto text = request_->environment(name)) {
        set(key, value_from_text(key, *text), -1, name);
      }
    }
  }

  void read_override(const Override& override) {
    for (const auto& key : all_keys()) {
      if (full_name(key) != override.key) continue;
      set(key, value_from_text(key, override.value), -1, override.origin);
    }
  }

  void set(const Key& key, const Value& value, int element, const std::string& origin) {
    auto checked = check_value(key, value);
    if (!checked) return problem(origin, checked.error().message);
    remember({&key, element, value_text(key, *checked), origin});
    const auto target = target_of(key, element);
    const bool is_used =
        element >= 0 ? request_->destinations : key.section != "worker" || request_->worker;
    if (!key.expands || !is_used) return key.set(target, *checked);
    auto expanded = expand_all(*checked);
    if (!expanded) {
      return problem(origin, fmt::format("{}: {}", full_name(key), expanded.error().message));
    }
    key.set(target, *expanded);
  }

  Result<Checked> expand_all(const Checked& value) const {
    const auto* const list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr) {
      auto one = expand(std::get<std::string>(value), request_->environment);
      if (!one) return std::move(one).error();
      return Checked(std::move(one).value());
    }
    std::vector<std::string> texts;
    for (const auto& text : *list) {
      auto one = expand(text, request_->environment);
      if (!one) return std::move(one).error();
      texts.push_back(std::move(one).value());
    }
    return Checked(std::move(texts));
  }

  Target target_of(const Key& key, int element) {
    auto& settings = loaded_.settings;
    if (element < 0) return {&settings};
    const auto number = static_cast<std::size_t>(element);
    if (key.section == "schedules") return {&settings, nullptr, &settings.schedules[number]};
    return {&settings, &settings.routes[number]};
  }

  void remember(SetValue value) {
    std::erase_if(loaded_.values, [&](const SetValue& known) {
      return known.key == value.key && known.element == value.element;
    });
    loaded_.values.push_back(std::move(value));
  }

  void check_required(std::size_t route) {
    for (const auto& key : all_keys()) {
      if (key.section != "routes" || !key.required) continue;
      if (route_names_[route].count(key.name) != 0) continue;
      route_has_problem_[route] = true;
      problem(at(route_lines_[route]),
              fmt::format("this route has no {}. Give {}.", key.name, range_text(key)));
    }
  }

  // A route publishes, or it makes jobs.
  void check_kind(std::size_t route) {
    const auto& names = route_names_[route];
    const auto before = loaded_.problems.size();
    const bool job = names.count("job") != 0;
    if (job && names.count("queue") == 0) {
      problem(at(route_lines_[route]),
              "this route has a job and no queue. Give the queue in which its tasks wait.");
    }
    if (!job && names.count("to") == 0) {
      problem(at(route_lines_[route]),
              fmt::format("this route has no to. Give {}, or a job and a queue.",
                          range_text(*find_key("routes", "to"))));
    }
    for (const auto& [name, line] : names) {
      const auto* key = find_key("routes", name);
      if (key->route_kind == (job ? RouteKind::publish : RouteKind::job)) {
        problem(at(line), job ? without_job(name) : with_job(name));
      }
    }
    if (job && names.count("max_deaths") != 0 &&
        loaded_.settings.routes[route].job.on_worker_death == OnWorkerDeath::fail) {
      problem(at(names.at("max_deaths")),
              "routes.max_deaths needs on_worker_death = \"retry\". Add it, or remove max_deaths.");
    }
    route_has_problem_[route] = loaded_.problems.size() > before;
  }

  static std::string without_job(const std::string& name) {
    return fmt::format("routes.{} cannot be given on a route with a job. Remove it{}.", name,
                       name == "order" ? "; a serial_key keeps jobs in order" : "");
  }

  static std::string with_job(const std::string& name) {
    return fmt::format("routes.{} needs job. Add job = \"NAME\", or remove it.", name);
  }

  void make_job_route(std::size_t number) {
    auto& [route, job, amqp, http] = loaded_.settings.routes[number];
    const auto& names = route_names_[number];
    const auto timeout = names.count("timeout") != 0 ? route.timeout : JobPolicy::default_timeout;
    if (names.count("timeout_limit") == 0) job.timeout_limit = std::max(job.timeout_limit, timeout);
    auto made = job_route(route.name, route.events, job);
    made.destination = route.destination;
    made.retry_delays = route.retry_delays;
    made.outage_counts = route.outage_counts;
    made.timeout = timeout;
    route = std::move(made);
  }

  // What no single key can tell. Not asked while one key is wrong: it would say the same again.
  void check_relay() {
    if (!loaded_.problems.empty()) return;
    for (auto& fault : validate(loaded_.settings.relay)) {
      problem(request_->path.value_or("relay"), "relay: " + std::move(fault));
    }
  }

  std::string origin_of(const char* section, const char* name) const {
    const auto* set = find_value(loaded_, *find_key(section, name), -1);
    return set == nullptr ? request_->path.value_or(section) : set->origin;
  }

  // "mail", or "mail:3" with a weight.
  void read_worker_queues() {
    for (const auto& text : loaded_.settings.worker_queues) {
      QueueShare share{text, 1};
      if (const auto colon = text.find(':'); colon != std::string::npos) {
        share.queue = text.substr(0, colon);
        const auto* const end = text.data() + text.size();
        const auto [rest, fault] = std::from_chars(text.data() + colon + 1, end, share.weight);
        if (fault != std::errc() || rest != end) {
          problem(
              origin_of("worker", "queues"),
              fmt::format("the queue '{}' has a weight that is no number. Write mail or mail:3.",
                          text));
        }
      }
      loaded_.settings.worker.queues.push_back(std::move(share));
    }
  }

  // Queues may be left out: what is configured may be for relays only.
  void check_worker() {
    auto& worker = loaded_.settings.worker;
    worker.store_timeout = loaded_.settings.relay.store_timeout;
    if (!loaded_.problems.empty()) return;
    auto options = worker;
    if (options.queues.empty()) options.queues = {{"any", 1}};
    for (auto& fault : validate(options)) {
      const bool of_queue = fault.find("queue") != std::string::npos;
      problem(of_queue ? origin_of("worker", "queues") : request_->path.value_or("worker"),
              "worker: " + std::move(fault));
    }
  }

  void check_routes() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < loaded_.settings.routes.size(); ++i) {
      const auto& route = loaded_.settings.routes[i].route;
      if (route_has_problem_[i]) continue;
      for (const auto& fault : validate(route)) {
        problem(at(route_lines_[i]), fmt::format("route {}: {}", route.name, fault));
      }
      if (!names.insert(route.name).second) {
        problem(
            at(route_lines_[i]),
            fmt::format("a second route is called {}. Give each a name of its own.", route.name));
      } else {
        check_conflict(i);
      }
    }
  }

  void check_conflict(std::size_t number) {
    const auto& route = loaded_.settings.routes[number].route;
    for (std::size_t i = 0; i < number; ++i) {
      const auto& earlier = loaded_.settings.routes[i].route;
      if (route_has_problem_[i] || !conflict(earlier, route)) continue;
      problem(at(route_lines_[number]),
              fmt::format("the routes {} and {} both make the job {} in the queue {} of the same "
                          "events, of which the database takes one. Give them different events, "
                          "or remove one.",
                          earlier.name, route.name, route.job->job, route.job->queue));
    }
  }

  void check_required(ScheduleText& schedule) {
    for (const auto& key : all_keys()) {
      if (key.section != "schedules" || !key.required || schedule.key_lines.contains(key.name)) {
        continue;
      }
      schedule.faulty = true;
      problem(at(schedule.line),
              fmt::format("this schedule has no {}. Give {}.", key.name, range_text(key)));
    }
  }

  void check_schedules() {
    for (auto& fault : find_faults(loaded_.settings.schedules, schedules_))
      problem(at(fault.line), std::move(fault.message));
  }

  const LoadRequest* request_;
  Loaded loaded_;
  std::vector<int> route_lines_;
  std::vector<bool> route_has_problem_;
  std::vector<std::map<std::string, int>> route_names_;  // the keys of each route, with their lines
  std::vector<ScheduleText> schedules_;
};

}  // namespace

const SetValue* find_value(const Loaded& loaded, const Key& key, int element) {
  for (const auto& value : loaded.values) {
    if (value.key == &key && value.element == element) return &value;
  }
  return nullptr;
}

Loaded load(const LoadRequest& request) {
  return Loader(request).run();
}

}  // namespace postrider::config

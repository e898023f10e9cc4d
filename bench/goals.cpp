#include "bench/goals.hpp"

#include <algorithm>
#include <cstdio>

#include "bench/figures.hpp"

namespace postrider::bench {
namespace {

template <class... Values>
std::string format(const char* form, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string miss(const Goal& goal, const nlohmann::ordered_json& figure) {
  const std::string head = std::string(goal.name) + ": ";
  const std::string meaning = " (" + std::string(goal.meaning) + ")";
  if (goal.kind == Goal::Kind::value_below) {
    const double value = figure.at("product");
    if (value < goal.bound) return {};
    return head + format("%.3f is not below %.3f", value, goal.bound) + meaning;
  }
  if (!figure.contains("ratio")) return head + "has no ratio" + meaning;
  const double disagreement = figure.at("spread");
  if (disagreement > most_spread) {
    return head +
           format(
               "no ratio is reported, as pairs disagree by %.0f %% (at most %.0f %%); run it "
               "again on a quiet machine",
               disagreement * 100, most_spread * 100) +
           meaning;
  }
  const double ratio = figure.at("ratio");
  if (ratio >= goal.bound) return {};
  return head + format("%.3f is not at least %.3f", ratio, goal.bound) + meaning;
}

}  // namespace

const std::vector<Goal>& goals() {
  using Kind = Goal::Kind;
  static const std::vector<Goal> all = {
      {"memory_small", Kind::ratio_at_least, 0.80,
       "200,000 events into memory, against a bare loop that reads and marks"},
      {"memory_large", Kind::ratio_at_least, 0.80,
       "1,000,000 events into memory, against a bare loop that reads and marks"},
      {"growth", Kind::ratio_at_least, 0.90,
       "the last 100,000 of 1,000,000 events, against 200,000 alone"},
      {"held_snapshot", Kind::ratio_at_least, 0.90,
       "1,000,000 events while a session holds a snapshot, against the same without"},
      {"held_snapshot_tail", Kind::ratio_at_least, 0.90,
       "the last 100,000 of them, against the same without"},
      {"held_snapshot_idle_ms", Kind::value_below, 0.2,
       "a look that finds nothing after them, while the snapshot is held"},
      {"held_writer", Kind::ratio_at_least, 0.90,
       "200,000 events while a session holds an uncommitted event, against the same without"},
      {"rabbitmq_small", Kind::ratio_at_least, 0.95,
       "200,000 events into a quorum queue, against publishing alone"},
      {"rabbitmq_large", Kind::ratio_at_least, 0.95,
       "1,000,000 events into a quorum queue, against publishing alone"},
      {"resident_mib", Kind::value_below, 24, "the most memory of any relay of this run, in MiB"},
      {"writer", Kind::ratio_at_least, 0.90,
       "business transactions with an event at 8 connections, against a bare insert"},
      {"jobs_1", Kind::ratio_at_least, 0.70,
       "20,000 jobs with an empty handler, one worker, against the same row changes"},
      {"jobs_4", Kind::ratio_at_least, 0.70,
       "20,000 jobs with an empty handler, four workers, against the same row changes"},
      {"jobs_4_limited", Kind::ratio_at_least, 0.90,
       "JT-21: a limit of 400 running jobs for four workers with 100 each, against no limit"},
      {"jobs_4_rated", Kind::ratio_at_least, 0.90,
       "JT-21: a rate that four workers do not reach, against no rate"},
  };
  return all;
}

std::optional<Goal> find_goal(std::string_view name) {
  const auto found = std::find_if(goals().begin(), goals().end(),
                                  [&](const Goal& goal) { return goal.name == name; });
  if (found == goals().end()) return std::nullopt;
  return *found;
}

std::vector<std::string> missed_goals(const nlohmann::ordered_json& results) {
  std::vector<std::string> missed;
  const auto& figures = results.at("figures");
  for (const auto& goal : goals()) {
    const auto figure = std::find_if(figures.begin(), figures.end(), [&](const auto& one) {
      return one.at("name").template get<std::string>() == goal.name;
    });
    const auto line = figure == figures.end() ? std::string(goal.name) + ": was not measured (" +
                                                    std::string(goal.meaning) + ")"
                                              : miss(goal, *figure);
    if (!line.empty()) missed.push_back(line);
  }
  return missed;
}

}  // namespace postrider::bench

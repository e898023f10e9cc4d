#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/config_findings.hpp"
#include "cli/finding_view.hpp"
#include "cli/json_text.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace postrider::cli {
namespace {

/// How long the doctor may look; a deep look reads whole tables.
constexpr milliseconds patience = std::chrono::minutes(1);
constexpr milliseconds deep_patience = std::chrono::hours(4);
/// How many of the latest events and of the dead letters are looked at.
constexpr std::size_t sample = 1000;

Purpose purpose_of(const std::string& word) {
  if (word == "writer") return Purpose::writer;
  if (word == "worker") return Purpose::worker;
  return word == "reader" ? Purpose::reader : Purpose::relay;
}

void append(std::vector<Finding>& findings, const std::vector<Finding>& more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

Finding not_examined(std::string subject, const Error& error) {
  return {"not_examined",
          FindingSeverity::note,
          std::move(subject),
          error.message,
          "What is wrong there, if anything, is not told.",
          "Run the doctor with a role that may read our tables."};
}

/// What waits, fails or is paused, and patterns that match nothing.
void examine_work(const Session& session, std::vector<Finding>& findings) {
  const auto operations = session.backend().operations();
  const auto status = operations->status(std::nullopt, session.deadline());
  DeadFilter first;
  first.limit = sample;
  const auto letters = operations->dead_letters(first, session.deadline());
  if (status && letters) {
    append(findings, diagnose_work(*status, *letters));
  } else {
    findings.push_back(not_examined("outbox", status ? letters.error() : status.error()));
  }
  EventFilter latest;
  latest.limit = sample;
  const auto page = operations->events(latest, std::nullopt, session.deadline());
  if (page) append(findings, diagnose_patterns(session.settings(), page->events));
}

/// Jobs that nobody takes or ends, and workers that say nothing.
void examine_jobs(const Session& session, std::vector<Finding>& findings) {
  const auto operations = session.backend().job_operations();
  const auto status = operations->status(std::nullopt, session.deadline());
  const auto workers = operations->workers(false, std::nullopt, session.deadline());
  if (status && workers) {
    append(findings, diagnose_jobs(*status, *workers));
  } else {
    findings.push_back(not_examined("jobs", status ? workers.error() : status.error()));
  }
}

bool has_tables(const Diagnosis& diagnosis) {
  return std::none_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                      [](const auto& finding) { return finding.code.starts_with("schema_"); });
}

std::string text_of(const Diagnosis& diagnosis, const Console& console) {
  Table table({{"fact"}, {"value"}});
  for (const auto& fact : diagnosis.facts)
    table.add({{fact.name}, {fact.value}});
  return table.text(console) + "\n" + findings_text(diagnosis.findings, console);
}

std::string json_of(const Diagnosis& diagnosis) {
  nlohmann::ordered_json json;
  json["facts"] = nlohmann::ordered_json::object();
  for (const auto& fact : diagnosis.facts)
    json["facts"][fact.name] = fact.value;
  json.update(findings_json(diagnosis.findings));
  return printed(json);
}

}  // namespace

ExitCode run_doctor(const Options& options, Console& console) {
  const auto& chosen = options.doctor;
  Examination examination;
  examination.purpose = purpose_of(chosen.as);
  examination.deep = chosen.deep;
  const bool relays = examination.purpose == Purpose::relay;
  Session session(options.database);
  const auto needs = relays ? Needs::store_and_routes : Needs::store;
  if (const auto failed = session.open(needs, console)) return *failed;
  examination.schedules = !session.settings().schedules.empty();
  examination.store_timeout = session.settings().relay.store_timeout;

  auto diagnosis = session.backend().doctor()->examine(
      examination, Deadline::after(chosen.deep ? deep_patience : patience));
  if (!diagnosis) return console.fail("doctor", diagnosis.error());
  if (relays) append(diagnosis->findings, diagnose_config(session.loaded(), session.path()));
  if (has_tables(*diagnosis) && examination.purpose != Purpose::writer) {
    if (examination.purpose != Purpose::worker) examine_work(session, diagnosis->findings);
    examine_jobs(session, diagnosis->findings);
  }
  console.print(chosen.json ? json_of(*diagnosis) : text_of(*diagnosis, console));
  const auto worst_found = worst(diagnosis->findings);
  const auto allowed = chosen.strict ? FindingSeverity::note : FindingSeverity::warning;
  return worst_found && *worst_found > allowed ? ExitCode::exceeded : ExitCode::ok;
}

}  // namespace postrider::cli

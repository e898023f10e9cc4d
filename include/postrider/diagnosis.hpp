#pragma once
/// \file
/// The seam of `postrider doctor`: what is wrong with a database, or soon will be, as findings that
/// say what, why it matters and what to do.
///
/// A doctor looks and changes nothing. It asks for what the role may see, and says where it could
/// not look.
///
/// Thread safety: one thread at a time per object.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/job_operations.hpp>
#include <postrider/operations.hpp>
#include <postrider/result.hpp>

namespace postrider {

enum class FindingSeverity : std::uint8_t {
  note,     ///< good to know; nothing has to be done
  warning,  ///< may cost events, order or time, under circumstances that the text names
  error,    ///< does so now, or keeps a relay or a writer from working
};

[[nodiscard]] std::string_view to_string(FindingSeverity severity) noexcept;

struct Finding {
  std::string code;  ///< a stable word: "fsync_off"
  FindingSeverity severity = FindingSeverity::note;
  std::string subject;  ///< which one: a table, a transaction, a route
  std::string what;     ///< a sentence: what was found
  std::string why;      ///< a sentence: what follows from it
  std::string fix;      ///< a sentence: what to do
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// Something to know beside the findings, such as the server's version.
struct Fact {
  std::string name;
  std::string value;
};

struct Diagnosis {
  std::vector<Fact> facts;
  std::vector<Finding> findings;
};

/// What the connection that is examined is used for; decides which rights it needs.
enum class Purpose : std::uint8_t {
  relay,   ///< `postrider relay`
  writer,  ///< an application that writes events
  reader,  ///< `postrider status` and the like
  worker,  ///< `postrider worker`
};

/// What is looked for, and from where on it is a finding.
struct Examination {
  Purpose purpose = Purpose::relay;
  bool schedules = false;  ///< the relay has schedules: it writes events, too
  bool deep = false;       ///< reads whole tables: minutes on a large database
  milliseconds store_timeout = std::chrono::seconds(30);  ///< patience of one call of the relay
  milliseconds transaction_age = std::chrono::minutes(5);
  milliseconds prepared_age = std::chrono::minutes(1);
  milliseconds clock_difference = std::chrono::seconds(2);
  int most_connections_percent = 90;
  std::int64_t wal_bytes = std::int64_t{64} << 20U;
  std::int64_t free_bytes = std::int64_t{256} << 20U;
};

class Doctor {
 public:
  virtual ~Doctor() = default;

  /// Looks at everything that this store can tell about itself.
  ///
  /// Blocking: until `deadline`.
  /// Errors: what keeps it from looking at all. What keeps it from one look is a finding.
  virtual Result<Diagnosis> examine(const Examination& examination, Deadline deadline) = 0;
};

/// What the counts say, the same for every store: what is held, dead, paused or without a relay.
///
/// `letters` are the dead letters, or the first of them.
[[nodiscard]] std::vector<Finding> diagnose_work(const Status& status,
                                                 const std::vector<DeadLetter>& letters);

/// The same of jobs: queues whose due jobs nobody takes, attempts that nobody ends, and workers
/// that say nothing.
///
/// `workers` are those that live, or the latest of them.
[[nodiscard]] std::vector<Finding> diagnose_jobs(const JobStatus& status,
                                                 const std::vector<ListedWorker>& workers);

}  // namespace postrider

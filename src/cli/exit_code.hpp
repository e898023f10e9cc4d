#pragma once
#include <postrider/result.hpp>

namespace postrider::cli {

/// How a command ends: the codes of sysexits(3), and some below them for what is no error.
enum class ExitCode : int {
  ok = 0,
  exceeded = 1,      ///< `check`: a threshold is exceeded
  stale = 3,         ///< `attempt`: another one has taken its place, or the job has ended: stop
  cancel = 4,        ///< `attempt`: it is current, and a person wants it to stop
  usage = 64,        ///< the command line is wrong
  data = 65,         ///< the input is wrong
  unavailable = 69,  ///< the database cannot be reached
  software = 70,     ///< a defect of Postrider
  io = 74,           ///< a file cannot be read or written
  temporary = 75,    ///< not now: a destination is down, another relay is at work, a conflict
  permission = 77,   ///< credentials or rights are missing
  config = 78,       ///< the configuration or the schema cannot be used
};

[[nodiscard]] ExitCode exit_code_of(ErrorCode code) noexcept;

}  // namespace postrider::cli

#pragma once
/// \file
/// Who a worker is, and whether another one of this host is gone.
///
/// Host names repeat and process numbers are used again. So a host is its name, its boot and its
/// view of process numbers (containers of one machine have their own), and a start of a worker is
/// a fresh id, never a number.

#include <cstdint>
#include <optional>
#include <string>

#include <postrider/job_store_values.hpp>

namespace postrider::engine {

struct HostIdentity {
  std::string text;         ///< "shop-3/6f1c…/4026531836"
  bool is_certain = false;  ///< false: parts are unknown, so nobody may be declared dead by it
};
[[nodiscard]] HostIdentity this_host();
[[nodiscard]] std::int64_t this_process() noexcept;

/// Whether the process of this start is surely gone. Its number may belong to somebody else by now;
/// that is not seen unless it is our own.
///
/// Requires: `other.host` is this host, and certain.
[[nodiscard]] bool is_gone(const WorkerInfo& other);

/// The start that a worker of this process goes by, known to all its workers: one that has our
/// process number and is none of these belongs to an earlier process with the same number, as the
/// first process of a container always has.
///
/// Thread safety: one thread at a time per object.
class OwnStart {
 public:
  OwnStart() = default;
  ~OwnStart();
  OwnStart(const OwnStart&) = delete;
  OwnStart& operator=(const OwnStart&) = delete;
  /// Goes by this id from now on.
  void set(WorkerId id);

 private:
  std::optional<WorkerId> id_;
};

}  // namespace postrider::engine

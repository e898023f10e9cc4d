#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "registry/registry.hpp"

namespace postrider::cli {
namespace {

// Only what a new user may want to change; docs/operate/configuration.md has every key.
constexpr std::string_view file_text = R"(# Postrider. Every key: docs/operate/configuration.md
#
# Environment variables go before this file: POSTRIDER_STORE, POSTRIDER_RELAY_BATCH, ...
# Secrets stay outside of it: write ${{NAME}} for an environment variable, or ${{file:PATH}}.

store = {store}   # sqlite:PATH, postgresql://… or mariadb://user@host/database
# prefix = "shop_"   # put before every table's name; fixed with the first migration

[relay]
# batch = 1000          # events read at once
# sleep = "1s"          # pause of an idle `relay --loop`
# unrouted = "hold"     # or "discard": events that no route matches

[retention]
# events = "7d"         # what `relay --loop` deletes; "off" keeps for ever
# keys = "7d"
# receipts = "30d"      # longer than a copy of a message may take to come
# workers = "30d"       # after one has stopped or died

# One table per route. An event goes by every route that matches its type.
[[routes]]
name = "all"
events = ["*"]          # "order.placed", "order.*", or "*" for all
to = {to}   # file:PATH, stdout:, amqp://user@host/vhost, https://host/path
# order = "aggregate"   # what keeps its order; or "global", "none"
# retry_delays = ["1s", "5s", "30s", "2m", "10m"]   # then it is a dead letter
# timeout = "30s"       # how long an attempt may stay unanswered
# on_failed = "halt"    # a dead letter halts its aggregate; or "skip", "stop"

# A route with a job makes a task for workers of each event; see `postrider worker`.
# [[routes]]
# name = "ship"
# events = ["order.placed"]
# job = "reserve_stock"         # what a handler is bound to
# queue = "shipping"            # where its tasks wait
# retry_delays = ["1m", "10m"]
# timeout = "10m"
# on_worker_death = "fail"      # or "retry", at most max_deaths times
# failed_event = "shipping.failed"   # an event of its own when the job has failed for good
# serial_key = "{{aggregate_id}}" # jobs with equal keys run one after the other

[log]
# level = "info"        # debug, info, warning, error
# format = "auto"       # text on a terminal, else JSON
)";

// A TOML basic string.
std::string in_quotes(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// A URL whose parts come from the environment cannot be judged here.
bool has_reference(const std::string& url) {
  return url.find("${") != std::string::npos;
}

std::string fault_of(const InitOptions& init) {
  if (!has_reference(init.store)) {
    const auto backend = registry::open_backend(init.store, {});
    if (!backend) return "--store: " + backend.error().message;
  }
  if (!has_reference(init.to)) {
    const auto destination = registry::find_destination(init.to, {});
    if (!destination) return "--to: " + destination.error().message;
  }
  return {};
}

bool write_file(const std::string& path, std::string_view content, bool replace) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL);
  const int file = ::open(path.c_str(), flags, 0640);  // may come to hold a secret
  if (file < 0) return false;
  const auto written = ::write(file, content.data(), content.size());
  const bool closed = ::close(file) == 0;
  return closed && written == static_cast<ssize_t>(content.size());
}

}  // namespace

ExitCode run_init(const Options& options, Console& console) {
  const auto& init = options.init;
  const auto path = options.database.config.empty() ? "postrider.toml" : options.database.config;
  if (const auto fault = fault_of(init); !fault.empty()) {
    console.complain("init", fault);
    return ExitCode::usage;
  }
  const auto content = fmt::format(file_text, fmt::arg("store", in_quotes(init.store)),
                                   fmt::arg("to", in_quotes(init.to)));
  if (!write_file(path, content, init.force)) {
    if (errno == EEXIST) {
      console.complain("init", path + " is there already. Give --force to replace it.");
    } else {
      console.complain("init", fmt::format("{} cannot be written: {}. Check the folder.", path,
                                           std::strerror(errno)));
    }
    return ExitCode::io;
  }
  console.print(fmt::format("Wrote {}. Next: postrider migrate\n", path));
  return ExitCode::ok;
}

}  // namespace postrider::cli

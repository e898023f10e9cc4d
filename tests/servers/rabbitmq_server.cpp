#include "servers/rabbitmq_server.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): SIGSTOP is POSIX
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "servers/line_socket.hpp"
#include "servers/test_authority.hpp"

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto start_patience = seconds(90);  // Six seconds on an idle machine.
constexpr auto stop_patience = seconds(30);
constexpr auto control_patience = seconds(30);
// Debian's wrapper in /usr/sbin insists on its own user and home; the scripts behind it do not.
constexpr std::string_view scripts_folder = "/usr/lib/rabbitmq/bin";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string script(const std::string& name) {
  const auto debian = std::string(scripts_folder) + "/" + name;
  return access(debian.c_str(), X_OK) == 0 ? debian : find_program(name);
}

class OwnRabbitmq final : public Rabbitmq {
 public:
  explicit OwnRabbitmq(const std::string& folder);

  void start() override;
  void stop() override;
  void kill() override;
  void freeze() override { server_->signal(SIGSTOP); }
  void thaw() override { server_->signal(SIGCONT); }
  bool running() override { return server_ && server_->running(); }
  std::string control(const std::vector<std::string>& arguments) override;
  Ports ports() const override { return ports_; }
  const std::string& folder() const override { return folder_; }

 private:
  void write_configuration();
  void write_environment();
  void await_ready();
  [[noreturn]] void fail(const std::string& what);

  const std::string folder_;
  Ports ports_;
  const int epmd_port_ = free_port();
  const int distribution_port_ = free_port();
  Environment environment_;
  std::optional<ChildProcess> epmd_;  // Before the server, which is registered there while it runs.
  std::optional<ChildProcess> server_;
};

OwnRabbitmq::OwnRabbitmq(const std::string& folder)
    : folder_(folder), ports_{free_port(), free_port()} {
  write_configuration();
  write_environment();
  epmd_.emplace(std::vector<std::string>{find_program("epmd"), "-address", "127.0.0.1", "-port",
                                         std::to_string(epmd_port_)},
                environment_, folder_ + "/epmd.log");
  start();
}

void OwnRabbitmq::write_configuration() {
  TestAuthority authority(folder_, "ca");
  CertificateWish wish;
  wish.dns_names = {"localhost"};
  const auto files = authority.issue("server", wish);
  (void)authority.issue("client", {});  // For tests: client-cert.pem, client-key.pem.
  std::ofstream(folder_ + "/enabled_plugins") << "[].\n";
  std::ofstream(folder_ + "/rabbitmq.conf")
      << "listeners.tcp.default = 127.0.0.1:" << ports_.amqp << "\n"
      << "listeners.ssl.default = 127.0.0.1:" << ports_.amqps << "\n"
      << "ssl_options.cacertfile = " << authority.ca_file() << "\n"
      << "ssl_options.certfile = " << files.certificate_file << "\n"
      << "ssl_options.keyfile = " << files.key_file << "\n"
      << "ssl_options.verify = verify_peer\n"
      << "ssl_options.fail_if_no_peer_cert = false\n"
      // Small enough that a test can be over it.
      << "max_message_size = 16777216\n"
      // The disk of a laptop may be fuller than the broker likes.
      << "disk_free_limit.absolute = 1MB\n"
      << "vm_memory_high_watermark.relative = 0.6\n";
}

void OwnRabbitmq::write_environment() {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  environment_ = {
      {"PATH", path == nullptr ? "/usr/bin:/bin" : path},
      {"HOME", folder_},
      {"LANG", "C.UTF-8"},
      {"RABBITMQ_NODENAME", "postrider" + std::to_string(ports_.amqp) + "@localhost"},
      {"RABBITMQ_DIST_PORT", std::to_string(distribution_port_)},
      {"ERL_EPMD_PORT", std::to_string(epmd_port_)},
      {"ERL_EPMD_ADDRESS", "127.0.0.1"},
      {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
       "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"},
      {"RABBITMQ_MNESIA_BASE", folder_ + "/mnesia"},
      {"RABBITMQ_LOG_BASE", folder_ + "/log"},
      {"RABBITMQ_CONFIG_FILE", folder_ + "/rabbitmq.conf"},
      {"RABBITMQ_CONF_ENV_FILE", folder_ + "/no-such-file"},
      {"RABBITMQ_ENABLED_PLUGINS_FILE", folder_ + "/enabled_plugins"},
      {"RABBITMQ_PID_FILE", folder_ + "/pid"},
      // The start script then becomes the server, instead of waiting for it.
      {"RUNNING_UNDER_SYSTEMD", "1"},
  };
  mkdir((folder_ + "/mnesia").c_str(), 0700);
  mkdir((folder_ + "/log").c_str(), 0700);
}

void OwnRabbitmq::start() {
  if (running()) return;
  server_.emplace(std::vector<std::string>{script("rabbitmq-server")}, environment_,
                  folder_ + "/server.log");
  await_ready();
}

void OwnRabbitmq::await_ready() {
  // The listener opens last; a rabbitmqctl that answers says that everything before it is done.
  const auto give_up = std::chrono::steady_clock::now() + start_patience;
  for (;;) {
    const int descriptor = connect_to_loopback(ports_.amqp);
    if (descriptor >= 0) {
      close(descriptor);
      break;
    }
    if (!server_->running()) fail("ended while it was starting");
    if (std::chrono::steady_clock::now() > give_up) fail("did not start in time");
    std::this_thread::sleep_for(milliseconds(50));  // Polls an external process.
  }
  control({"await_startup"});
}

void OwnRabbitmq::stop() {
  if (server_) server_->stop(stop_patience);
  server_.reset();
}

void OwnRabbitmq::kill() {
  server_.reset();
}

std::string OwnRabbitmq::control(const std::vector<std::string>& arguments) {
  const auto output = folder_ + "/rabbitmqctl.log";
  std::error_code ignored;
  (void)std::remove(output.c_str());
  std::vector<std::string> command = {script("rabbitmqctl"), "--quiet"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ChildProcess process(command, environment_, output);
  if (process.wait(control_patience) != 0) fail("refused rabbitmqctl: " + read_file(output));
  return read_file(output);
}

void OwnRabbitmq::fail(const std::string& what) {
  const auto log = read_file(folder_ + "/server.log");
  throw std::runtime_error("RabbitMQ " + what + "\n" +
                           log.substr(log.size() - std::min<std::size_t>(log.size(), 2000)));
}

/// Speaks to the supervisor: one line with the command and its arguments, separated by tabs.
class AttachedRabbitmq final : public Rabbitmq {
 public:
  explicit AttachedRabbitmq(const std::string& folder) : folder_(folder) {
    std::istringstream ports(ask("ports"));
    ports >> ports_.amqp >> ports_.amqps;
  }
  void start() override { ask("start"); }
  void stop() override { ask("stop"); }
  void kill() override { ask("kill"); }
  void freeze() override { ask("freeze"); }
  void thaw() override { ask("thaw"); }
  bool running() override { return ask("running") == "yes"; }
  std::string control(const std::vector<std::string>& arguments) override {
    std::string line = "control";
    for (const auto& argument : arguments)
      line += "\t" + argument;
    return ask(line);
  }
  Ports ports() const override { return ports_; }
  const std::string& folder() const override { return folder_; }

 private:
  std::string ask(const std::string& line) {
    return ask_line_socket(supervisor_socket(folder_), line);
  }

  const std::string folder_;
  Ports ports_;
};

/// With a folder of its own, for a program without a supervisor.
class SelfContained {
 public:
  SelfContained() : server_(start_rabbitmq(folder_.path())) {}
  [[nodiscard]] Rabbitmq& server() { return *server_; }

 private:
  TemporaryFolder folder_{"rabbitmq"};
  std::unique_ptr<Rabbitmq> server_;
};

}  // namespace

std::vector<std::string> Rabbitmq::leftovers() {
  std::vector<std::string> left;
  for (const std::string kind : {"queue", "exchange"}) {
    std::istringstream names(control({"list_" + kind + "s", "--no-table-headers", "name"}));
    for (std::string name; std::getline(names, name);) {
      if (!name.empty() && !name.starts_with("amq.")) left.push_back(kind + " " + name);
    }
  }
  return left;
}

std::string Rabbitmq::url() const {
  return "amqp://127.0.0.1:" + std::to_string(ports().amqp);
}

std::string Rabbitmq::tls_url() const {
  return "amqps://localhost:" + std::to_string(ports().amqps);
}

std::string why_no_rabbitmq() {
  for (const char* name : {"rabbitmq-server", "rabbitmqctl"}) {
    if (script(name).empty()) return std::string(name) + " is not installed";
  }
  for (const char* name : {"epmd", "erl"}) {
    if (find_program(name).empty()) return std::string(name) + " (Erlang) is not installed";
  }
  return {};
}

std::unique_ptr<Rabbitmq> start_rabbitmq(const std::string& folder) {
  return std::make_unique<OwnRabbitmq>(folder);
}

std::unique_ptr<Rabbitmq> attach_to_rabbitmq(const std::string& folder) {
  return std::make_unique<AttachedRabbitmq>(folder);
}

Rabbitmq& shared_rabbitmq() {
  const char* supervised = std::getenv("POSTRIDER_TEST_RABBITMQ");  // NOLINT(concurrency-mt-unsafe)
  if (supervised != nullptr) {
    static const auto attached = attach_to_rabbitmq(supervised);
    attached->start();  // A test before may have failed while it was down.
    return *attached;
  }
  static SelfContained own;
  own.server().start();
  return own.server();
}

}  // namespace postrider::testing

#include "publisher/http/http_transfer.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "publisher/http/http_errors.hpp"

namespace postrider::http {
namespace {

constexpr int first_final_status = 200;
// A connection is used again for no longer than that: its name may have moved on, and an idle one
// may be dead without anybody having said so.
constexpr long most_idle_s = 30;
constexpr long most_age_s = 300;

// Without it the first handle would do it, which is not safe beside other threads.
void initialize_curl() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  POSTRIDER_ASSERT(done == CURLE_OK);
}

long milliseconds_of(milliseconds time) {
  return static_cast<long>(time.count());
}

}  // namespace

Transfer::Transfer(const RequestSettings& settings) : settings_(settings) {
  initialize_curl();
  handle_.reset(curl_easy_init());
  if (!handle_) throw std::bad_alloc();
  set_up();
  set_up_tls();
}

// Setting an option fails only for want of memory, or for one that this libcurl does not know. The
// build is made against 7.88, and what is set here guards others: nothing is sent without it.
template <class Value>
void Transfer::set(CURLoption option, Value value) {
  const auto done = curl_easy_setopt(handle_.get(), option, value);
  if (done == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  POSTRIDER_ASSERT(done == CURLE_OK);
}

void Transfer::set_up() {
  const auto& options = settings_.options;
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_NOSIGNAL, 1L);
  // A look-up of a name cannot be ended; with this it is left to itself and not waited for.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_URL, options.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROXY,
      options.proxy.c_str());  // also when it is empty: then the environment's is not
  set(CURLOPT_NOPROXY, "");
  set(CURLOPT_HTTPPROXYTUNNEL, 1L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_POST, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, "postrider/" POSTRIDER_VERSION);
  set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(options.connect_timeout));
  set(CURLOPT_MAXAGE_CONN, most_idle_s);
  set(CURLOPT_MAXLIFETIME_CONN, most_age_s);
  set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_PREREQFUNCTION, &Transfer::on_connected);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, this);
}

void Transfer::set_up_tls() {
  const auto& options = settings_.options;
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.ca_file.empty()) {
    set(CURLOPT_CAINFO, options.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!options.certificate_file.empty()) {
    set(CURLOPT_SSLCERT, options.certificate_file.c_str());
    set(CURLOPT_SSLKEY, options.key_file.c_str());
  }
}

void Transfer::add(const std::string& line) {
  auto* const longer = curl_slist_append(lines_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)lines_.release();  // it is the head of the longer one
  lines_.reset(longer);
}

void Transfer::begin(const Message& message, const HeaderLines& lines, Timestamp now) {
  attempt_ = message.attempt;
  event_ = message.event;
  answer_ = {};
  sent_ = refused_address_ = opened_socket_ = false;
  const auto at = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
  for (const auto& line : lines)
    add(line);
  for (const auto& line : signature_lines(*event_, settings_.keys, at))
    add(line);
  set(CURLOPT_HTTPHEADER, lines_.get());
  set(CURLOPT_POSTFIELDS, event_->payload.data());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(event_->payload.size()));
  set(CURLOPT_TIMEOUT_MS, milliseconds_of(std::max(message.timeout, milliseconds(1))));  // 0: none
}

Outcome Transfer::end(CURLcode code, Timestamp now) {
  auto outcome = outcome_of(code, now);
  set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  set(CURLOPT_POSTFIELDS, static_cast<const char*>(nullptr));
  lines_.reset();
  event_.reset();
  return outcome;
}

int Transfer::status() const {
  long status = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

Outcome Transfer::outcome_of(CURLcode code, Timestamp now) const {
  const auto final_status = sent_ ? status() : 0;
  // Whatever becomes of the rest of the answer: with its status it has been given.
  if (final_status >= first_final_status) {
    return judge_status(final_status, asked_pause(answer_, now, settings_.options.most_retry_after),
                        settings_.statuses, settings_.authority);
  }
  if (!sent_ && refused_address_ && !opened_socket_) {
    return Outcome::unavailable(
        "address_refused",
        fmt::format("{} leads to an address that is not public. Correct the URL, or name the "
                    "address in `allow`.",
                    settings_.authority));
  }
  return fault_outcome(code, sent_, settings_.authority);
}

curl_socket_t Transfer::open_socket(void* self, curlsocktype /*purpose*/,
                                    curl_sockaddr* address) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  const auto target = address_of(address->addr);
  if (!target || !transfer.settings_.guard.allows(*target)) {
    transfer.refused_address_ = true;
    return CURL_SOCKET_BAD;
  }
  transfer.opened_socket_ = true;
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int Transfer::on_connected(void* self, char* /*their_address*/, char* /*our_address*/,
                           int /*their_port*/, int /*our_port*/) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.sent_) return CURL_PREREQFUNC_ABORT;
  transfer.sent_ = true;
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_header(char* bytes, std::size_t size, std::size_t count,
                                void* self) noexcept {
  const auto total = size * count;
  return static_cast<Transfer*>(self)->answer_.take_header({bytes, total}) ? total : 0;
}

std::size_t Transfer::on_body(char* /*bytes*/, std::size_t size, std::size_t count,
                              void* self) noexcept {
  const auto total = size * count;
  return static_cast<Transfer*>(self)->answer_.take_body(total) ? total : 0;
}

}  // namespace postrider::http

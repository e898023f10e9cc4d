#pragma once
/// \file
/// One request at a time over one handle of libcurl, which a publisher uses again and again.
///
///   idle ──begin──▶ connecting ──(the connection is there)──▶ sent ──end──▶ idle
///
/// The step to "sent" is libcurl's word that it is about to write (CURLOPT_PREREQFUNCTION): before
/// it a failure is an outage, behind it the endpoint may have the message. It is made once: on a
/// connection that turns out to be dead libcurl would write the request again by itself, and a
/// repetition is the relay's to decide.

#include <memory>
#include <string>

#include <curl/curl.h>

#include <postrider/message.hpp>
#include <postrider/publisher/http.hpp>

#include "publisher/http/http_addresses.hpp"
#include "publisher/http/http_answer.hpp"
#include "publisher/http/http_message.hpp"

namespace postrider::http {

/// What all requests of a publisher have in common; made from valid options.
struct RequestSettings {
  HttpOptions options;
  std::string authority;  ///< host and port: how messages name the endpoint
  AddressGuard guard;
  StatusTable statuses;
  HeaderSettings headers;
  WebhookKeys keys;
};

/// Not movable: libcurl holds its address.
class Transfer {
 public:
  /// `settings` is borrowed and must outlive this.
  explicit Transfer(const RequestSettings& settings);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  /// Makes the handle ready for a request that is signed at `now`. `lines` are the message's own.
  void begin(const Message& message, const HeaderLines& lines, Timestamp now);
  /// What became of it, with what libcurl said. Idle from here on.
  [[nodiscard]] Outcome end(CURLcode code, Timestamp now);

  [[nodiscard]] CURL* handle() const noexcept { return handle_.get(); }
  [[nodiscard]] AttemptId attempt() const noexcept { return attempt_; }
  [[nodiscard]] const Event& event() const noexcept { return *event_; }

 private:
  struct FreeHandle {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  };
  struct FreeLines {
    void operator()(curl_slist* lines) const noexcept { curl_slist_free_all(lines); }
  };

  // Called by C, which no exception may cross.
  static curl_socket_t open_socket(void* self, curlsocktype purpose,
                                   curl_sockaddr* address) noexcept;
  static int on_connected(void* self, char* their_address, char* our_address, int their_port,
                          int our_port) noexcept;
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count,
                               void* self) noexcept;
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) noexcept;

  template <class Value>
  void set(CURLoption option, Value value);
  void set_up();
  void set_up_tls();
  void add(const std::string& line);
  [[nodiscard]] int status() const;
  [[nodiscard]] Outcome outcome_of(CURLcode code, Timestamp now) const;

  const RequestSettings& settings_;
  std::unique_ptr<CURL, FreeHandle> handle_;
  std::unique_ptr<curl_slist, FreeLines> lines_;
  AttemptId attempt_;
  std::shared_ptr<const Event> event_;
  Answer answer_;
  bool sent_ = false;
  bool refused_address_ = false;  ///< at least one of the name's addresses
  bool opened_socket_ = false;    ///< and of at least one it was not
};

}  // namespace postrider::http

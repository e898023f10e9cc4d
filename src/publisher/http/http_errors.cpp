#include "publisher/http/http_errors.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace postrider::http {
namespace {

using enum Fault;

constexpr auto rows = std::to_array<ErrorRow>({
    {CURLE_COULDNT_RESOLVE_HOST, not_sent, "host_not_found",
     "its name does not resolve. Check the URL and the DNS."},
    {CURLE_COULDNT_RESOLVE_PROXY, not_sent, "proxy_failed",
     "the proxy's name does not resolve. Check `proxy`."},
    {CURLE_COULDNT_CONNECT, not_sent, "unavailable",
     "it cannot be connected to. Check that it runs and that nothing between filters it."},
    {CURLE_PROXY, not_sent, "proxy_failed", "the proxy refused it. Look at the proxy's log."},
    {CURLE_UNSUPPORTED_PROTOCOL, bad_answer, "protocol_error",
     "it does not speak HTTP/1.1. Check the port of the URL."},
    {CURLE_SSL_CONNECT_ERROR, not_sent, "tls_failed",
     "the TLS handshake failed. Check that the URL names a TLS port, and that both sides have TLS "
     "1.2 or later."},
    {CURLE_PEER_FAILED_VERIFICATION, not_sent, "tls_untrusted",
     "its certificate is expired, for another host or not trusted. Have it renewed, or set ca_file "
     "to the authority that signed it."},
    {CURLE_SSL_CERTPROBLEM, not_sent, "tls_certificate",
     "our own certificate or key cannot be used. Check certificate_file and key_file."},
    {CURLE_SSL_CACERT_BADFILE, not_sent, "tls_ca_file",
     "the authorities cannot be read. Check ca_file."},
    {CURLE_SSL_CIPHER, not_sent, "tls_failed",
     "no cipher is common to both sides. Ask its owner for TLS 1.2 with current ciphers."},
    {CURLE_SSL_ISSUER_ERROR, not_sent, "tls_untrusted",
     "the issuer of its certificate is not the expected one. Check ca_file."},
    {CURLE_OPERATION_TIMEDOUT, silent, "timeout",
     "no connection in time. Check host and port, or raise connect_timeout."},
    {CURLE_GOT_NOTHING, cut, "connection_lost", "it closed the connection without an answer."},
    {CURLE_SEND_ERROR, cut, "connection_lost", "the connection broke while sending."},
    {CURLE_RECV_ERROR, cut, "connection_lost", "the connection broke while waiting."},
    {CURLE_PARTIAL_FILE, cut, "connection_lost", "the answer was cut."},
    {CURLE_SEND_FAIL_REWIND, cut, "connection_lost", "the connection broke while sending."},
    {CURLE_ABORTED_BY_CALLBACK, cut, "connection_lost",
     "a connection from an earlier request had ended."},
    {CURLE_WEIRD_SERVER_REPLY, bad_answer, "protocol_error",
     "its answer is no HTTP. Check the port of the URL."},
    {CURLE_WRITE_ERROR, bad_answer, "protocol_error",
     "the headers of its answer are larger than is read. Ask its owner."},
    {CURLE_BAD_CONTENT_ENCODING, bad_answer, "protocol_error",
     "its answer cannot be read. Ask its owner."},
    {CURLE_OUT_OF_MEMORY, not_sent, "no_memory",
     "there is no memory for the request. Give the process more, or make `connections` smaller."},
    {CURLE_URL_MALFORMAT, not_sent, "url_invalid", "the URL cannot be used. Correct it."},
    {CURLE_NOT_BUILT_IN, not_sent, "unsupported",
     "libcurl was built without something that is needed. Use a build with TLS."},
});

constexpr ErrorRow unknown_row{CURLE_OK, cut, "unknown_code",
                               "libcurl says what Postrider does not know. Report it."};

}  // namespace

std::span<const ErrorRow> error_rows() noexcept {
  return rows;
}

const ErrorRow& find_error(CURLcode native_code) noexcept {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ErrorRow& known) {
    return known.native_code == native_code;
  });
  return row == rows.end() ? unknown_row : *row;
}

Outcome fault_outcome(CURLcode native_code, bool sent, std::string_view authority) {
  const auto& row = find_error(native_code);
  const auto detail = fmt::format("{}: {}", authority, row.sentence);
  if (!sent) return Outcome::unavailable(row.word, detail);
  switch (row.fault) {
    case bad_answer:
      return Outcome::answered_unknown(row.word, detail);
    case silent:
      return Outcome::unknown(
          "timeout", fmt::format("{} did not answer in time. Ask its owner, or raise the timeout "
                                 "of the route.",
                                 authority));
    case not_sent:
    case cut:
      break;
  }
  return Outcome::lost_connection(detail);
}

}  // namespace postrider::http

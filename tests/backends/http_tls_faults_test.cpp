// https: who the endpoint is, is proved before anything is sent.

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "backends/http_sender.hpp"
#include "process/patience.hpp"
#include "servers/child_process.hpp"
#include "servers/http_endpoint.hpp"
#include "servers/loopback.hpp"
#include "servers/test_authority.hpp"
#include "servers/tls_listener.hpp"

namespace postrider::testing {
namespace {

/// CERTIFICATE KEY PORT_FILE CLIENT_CA LOCATION: answers 204, or with LOCATION redirects there.
/// With CLIENT_CA who connects has to have a certificate.
constexpr const char* program = R"(
import http.server, ssl, sys
certificate, key, port_file, client_ca, location = sys.argv[1:6]
class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(307 if location else 204)
        if location:
            self.send_header("Location", location)
        self.end_headers()
    def log_message(self, *ignored):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
if client_ca:
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(client_ca)
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(port_file, "w") as file:
    file.write(f"{server.server_port}\n")
server.serve_forever()
)";

class HttpTlsFaults : public ::testing::Test {
 protected:
  struct Wishes {
    CertificateWish certificate{{"localhost"}, {}};
    std::string host = "localhost";
    std::string ca_file;
    std::string client_ca;
    std::string location;
    CertificateFiles own;
  };

  Outcome outcome_of(const Wishes& wishes) {
    std::filesystem::remove(folder_.file("port"));
    const auto files = authority_.issue("endpoint", wishes.certificate);
    ChildProcess endpoint({"/usr/bin/python3", "-c", program, files.certificate_file,
                           files.key_file, folder_.file("port"), wishes.client_ca, wishes.location},
                          {}, folder_.file("output"));
    std::string port;
    EXPECT_TRUE(comes_true([&] {
      std::ifstream file(folder_.file("port"));
      return std::getline(file, port) && !file.eof();
    }));
    auto options = loopback_options("https://" + wishes.host + ":" + port + "/hook");
    options.ca_file = wishes.ca_file;
    options.certificate_file = wishes.own.certificate_file;
    options.key_file = wishes.own.key_file;
    return HttpSender(options).send(http_event(1));
  }
  Wishes trusted() {
    Wishes wishes;
    wishes.ca_file = authority_.ca_file();
    return wishes;
  }

  TemporaryFolder folder_{"hooks"};
  TestAuthority authority_{folder_.path(), "authority"};
};

TEST_F(HttpTlsFaults, An_endpoint_with_a_trusted_certificate_of_its_name_is_used) {
  EXPECT_EQ(words_of(outcome_of(trusted())), "confirmed");
  auto by_address = trusted();
  by_address.certificate.addresses = {"127.0.0.1"};
  by_address.host = "127.0.0.1";
  EXPECT_EQ(words_of(outcome_of(by_address)), "confirmed");
}

TEST_F(HttpTlsFaults, F107_certificates_that_prove_nothing_are_an_outage_and_nothing_is_sent) {
  auto wrong_name = trusted();
  wrong_name.certificate.dns_names = {"example.com"};
  EXPECT_EQ(words_of(outcome_of(wrong_name)), "unavailable tls_untrusted");
  auto expired = trusted();
  expired.certificate.valid_from_s = -7200;
  expired.certificate.valid_until_s = -3600;
  EXPECT_EQ(words_of(outcome_of(expired)), "unavailable tls_untrusted");
  auto not_yet = trusted();
  not_yet.certificate.valid_from_s = 3600;
  EXPECT_EQ(words_of(outcome_of(not_yet)), "unavailable tls_untrusted");
  EXPECT_EQ(words_of(outcome_of(Wishes())), "unavailable tls_untrusted") << "an unknown authority";
}

TEST_F(HttpTlsFaults, Our_own_certificate_is_shown_where_one_is_asked_for) {
  auto asked = trusted();
  asked.client_ca = authority_.ca_file();
  EXPECT_NE(words_of(outcome_of(asked)), "confirmed");
  asked.own = authority_.issue("client", {{"postrider"}, {}});
  EXPECT_EQ(words_of(outcome_of(asked)), "confirmed");
}

TEST_F(HttpTlsFaults, A_file_of_authorities_that_cannot_be_read_is_named) {
  auto missing = trusted();
  missing.ca_file = folder_.file("missing.pem");
  const auto outcome = outcome_of(missing);
  EXPECT_EQ(words_of(outcome), "unavailable tls_ca_file");
  EXPECT_THAT(outcome.detail, ::testing::HasSubstr("Check ca_file"));
}

TEST_F(HttpTlsFaults, WT_05_a_redirect_from_https_to_http_is_never_followed) {
  HttpEndpoint plain;
  auto downgrade = trusted();
  downgrade.location = plain.url();
  EXPECT_EQ(words_of(outcome_of(downgrade)), "refused redirect_refused");
  EXPECT_EQ(plain.connections(), 0);
}

TEST_F(HttpTlsFaults, Nothing_older_than_TLS_1_2_is_spoken) {
  const auto files = authority_.issue("endpoint", {{"localhost"}, {}});
  TlsListener old(files, TlsListener::Versions::old_only);
  auto options = loopback_options("https://localhost:" + std::to_string(old.port()) + "/");
  options.ca_file = authority_.ca_file();

  const auto outcome = HttpSender(options).send(http_event(1));

  EXPECT_EQ(to_string(outcome.kind), "unavailable");
  EXPECT_EQ(old.handshakes(), 0);
}

TEST_F(HttpTlsFaults, A_port_that_speaks_no_TLS_is_an_outage_and_sees_no_payload) {
  HttpEndpoint plain;
  auto options = loopback_options("https://localhost:" + std::to_string(plain.port()) + "/");
  options.connect_timeout = milliseconds(500);

  const auto outcome = HttpSender(options).send(http_event(1));

  EXPECT_EQ(to_string(outcome.kind), "unavailable") << outcome.code;
  EXPECT_EQ(plain.requests().size(), 0U);
}

}  // namespace
}  // namespace postrider::testing

// https: who the endpoint is, is checked before anything is said to it.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include <postrider/runner/http.hpp>

#include "process/patience.hpp"
#include "runners/runner_kit.hpp"
#include "servers/child_process.hpp"
#include "servers/loopback.hpp"
#include "servers/test_authority.hpp"

namespace postrider::testing {
namespace {

using ::testing::IsEmpty;

/// CERTIFICATE KEY PORT_FILE: answers each POST with 204.
constexpr const char* endpoint_program = R"(
import http.server, ssl, sys
class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *ignored):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(sys.argv[3], "w") as file:
    file.write(f"{server.server_port}\n")
server.serve_forever()
)";

class HttpTls : public ::testing::Test {
 protected:
  /// The end of an attempt at an endpoint with such a certificate, called by such a host.
  std::string end_of(const CertificateWish& wish, const std::string& host,
                     const std::string& ca_file) {
    std::filesystem::remove(folder_.file("port"));
    const auto files = authority_.issue("endpoint", wish);
    ChildProcess endpoint({"/usr/bin/python3", "-c", endpoint_program, files.certificate_file,
                           files.key_file, folder_.file("port")},
                          {}, folder_.file("output"));
    std::string port;
    EXPECT_TRUE(comes_true([&] {
      std::ifstream file(folder_.file("port"));
      return std::getline(file, port) && !file.eof();
    }));
    HttpRunnerOptions options;
    options.url = "https://" + host + ":" + port + "/jobs";
    options.ca_file = ca_file;
    EXPECT_THAT(validate(options), IsEmpty());
    const auto runner = make_http_runner(options);
    runner->start(task(1));
    return words_of(next_report(*runner).end);
  }

  TemporaryFolder folder_{"https"};
  TestAuthority authority_{folder_.path(), "authority"};
};

TEST_F(HttpTls, an_endpoint_with_a_trusted_certificate_of_its_name_is_used) {
  EXPECT_EQ(end_of({{"localhost"}, {}}, "localhost", authority_.ca_file()), "done");
  EXPECT_EQ(end_of({{"localhost"}, {"127.0.0.1"}}, "127.0.0.1", authority_.ca_file()), "done");
}

TEST_F(HttpTls, a_certificate_of_another_name_is_refused) {
  EXPECT_EQ(end_of({{"example.com"}, {}}, "localhost", authority_.ca_file()), "retry tls_failed");
}

TEST_F(HttpTls, an_expired_certificate_is_refused) {
  EXPECT_EQ(end_of({{"localhost"}, {}, -7200, -3600}, "localhost", authority_.ca_file()),
            "retry tls_failed");
}

TEST_F(HttpTls, an_unknown_authority_is_refused) {
  EXPECT_EQ(end_of({{"localhost"}, {}}, "localhost", ""), "retry tls_failed");
}

}  // namespace
}  // namespace postrider::testing

// What the chaos proxy says it does, it does: the tests of publishers stand on it.

#include "servers/chaos_proxy.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace postrider::testing {
namespace {

using std::chrono::milliseconds;

/// One connection through a proxy, with both of its ends in the test's hands.
class ChaosProxyTest : public ::testing::Test {
 protected:
  void SetUp() override { connect(); }
  void TearDown() override {
    close(client_);
    close(server_);
    close(listener_);
  }

  void connect() {
    client_ = connect_to_loopback(proxy_.port());
    server_ = accept(listener_, nullptr, nullptr);
  }

  static void put(int descriptor, std::string_view text) {
    ASSERT_EQ(send(descriptor, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// What arrives: a text, "end", "reset", or "" when nothing does for a while.
  static std::string get(int descriptor, milliseconds patience = milliseconds(5'000)) {
    pollfd waiting{descriptor, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(patience.count())) == 0) return "";
    std::array<char, 100> buffer{};
    const auto received = recv(descriptor, buffer.data(), buffer.size(), 0);
    if (received == 0) return "end";
    if (received < 0) return errno == ECONNRESET ? "reset" : "error";
    return {buffer.data(), static_cast<std::size_t>(received)};
  }
  /// Nothing arrives; how long it does not is no promise, so a moment is enough.
  static std::string get_soon(int descriptor) { return get(descriptor, milliseconds(100)); }

  int port_ = 0;
  int listener_ = listen_on_loopback(port_);
  ChaosProxy proxy_{port_};
  int client_ = -1;
  int server_ = -1;
};

TEST_F(ChaosProxyTest, PassesBothDirectionsAndTheEnd) {
  put(client_, "question");
  EXPECT_EQ(get(server_), "question");
  put(server_, "answer");
  EXPECT_EQ(get(client_), "answer");
  shutdown(client_, SHUT_WR);
  EXPECT_EQ(get(server_), "end");
  put(server_, "last word");
  EXPECT_EQ(get(client_), "last word");
}

TEST_F(ChaosProxyTest, HoldsOneDirectionUntilItIsReleased) {
  proxy_.tell("down hold");
  put(server_, "late");
  EXPECT_EQ(get_soon(client_), "");
  put(client_, "passes");
  EXPECT_EQ(get(server_), "passes");
  proxy_.tell("down release");
  EXPECT_EQ(get(client_), "late");
}

TEST_F(ChaosProxyTest, Delays) {
  proxy_.tell("up delay 200");
  const auto begin = std::chrono::steady_clock::now();
  put(client_, "slow");
  EXPECT_EQ(get(server_), "slow");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
}

TEST_F(ChaosProxyTest, DropsForGood) {
  proxy_.tell("up drop");
  put(client_, "lost");
  EXPECT_EQ(get_soon(server_), "");
  proxy_.tell("up pass");
  put(client_, "kept");
  EXPECT_EQ(get(server_), "kept");
}

TEST_F(ChaosProxyTest, DropsAfterSoManyBytes) {
  proxy_.tell("up drop-after 3");
  put(client_, "abcdef");
  EXPECT_EQ(get(server_), "abc");
  put(client_, "ghi");
  EXPECT_EQ(get_soon(server_), "");
}

TEST_F(ChaosProxyTest, CutsAfterSoManyBytes) {
  proxy_.tell("down cut-after 2");
  put(server_, "abc");
  EXPECT_EQ(get(client_), "ab");
  EXPECT_EQ(get(client_), "end");
  EXPECT_EQ(proxy_.tell("connections"), "0");
}

TEST_F(ChaosProxyTest, ABlackHoleKeepsWhatItDidNotRead) {
  proxy_.tell("up black-hole");
  put(client_, "swallowed");
  EXPECT_EQ(get_soon(server_), "");
  proxy_.tell("up pass");
  EXPECT_EQ(get(server_), "swallowed");
}

TEST_F(ChaosProxyTest, CutIsAnEndAndResetIsAReset) {
  proxy_.tell("down cut");
  EXPECT_EQ(get(client_), "end");
  put(client_, "still open this way");
  EXPECT_EQ(get(server_), "still open this way");
  proxy_.tell("both reset");
  EXPECT_EQ(get(server_), "reset");
  EXPECT_EQ(proxy_.tell("connections"), "0");
}

TEST_F(ChaosProxyTest, AModeIsForLaterConnectionsToo) {
  proxy_.tell("up drop");
  close(client_);
  close(server_);
  connect();
  put(client_, "lost");
  EXPECT_EQ(get_soon(server_), "");
}

TEST_F(ChaosProxyTest, RefusesNewConnectionsOnly) {
  proxy_.tell("refuse");
  const int refused = connect_to_loopback(proxy_.port());
  EXPECT_NE(get(refused), "");
  close(refused);
  put(client_, "old");
  EXPECT_EQ(get(server_), "old");
  proxy_.tell("accept");
  close(client_);
  close(server_);
  connect();
  put(client_, "new");
  EXPECT_EQ(get(server_), "new");
}

TEST_F(ChaosProxyTest, LeavesItsPortAndReturnsToIt) {
  proxy_.tell("leave");
  EXPECT_EQ(connect_to_loopback(proxy_.port()), -1);
  put(client_, "old");
  EXPECT_EQ(get(server_), "old");
  proxy_.tell("return");
  close(client_);
  close(server_);
  connect();
  put(client_, "new");
  EXPECT_EQ(get(server_), "new");
}

TEST_F(ChaosProxyTest, RefusesAnUnknownCommand) {
  EXPECT_THROW(proxy_.tell("sideways pass"), std::runtime_error);
  EXPECT_THROW(proxy_.tell("up explode"), std::runtime_error);
}

}  // namespace
}  // namespace postrider::testing

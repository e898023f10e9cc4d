// The MariaDB that other tests rely on: it starts, crashes and comes back with what was committed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "servers/mariadb_server.hpp"

namespace postrider::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

#define NEEDS_MARIADB()                                  \
  if (const auto why = why_no_mariadb(); !why.empty()) { \
    if (std::getenv("CI") != nullptr) FAIL() << why;     \
    GTEST_SKIP() << why;                                 \
  }

TEST(MariadbServer, What_was_committed_before_a_crash_is_there_afterwards) {
  NEEDS_MARIADB();
  MariadbServer server;
  const auto database = server.create_database();
  {
    MariadbSession session(server, database);
    session.run("CREATE TABLE t (a INT PRIMARY KEY) ENGINE = InnoDB");
    session.run("INSERT INTO t VALUES (1)");
    session.run("START TRANSACTION");
    session.run("INSERT INTO t VALUES (2)");

    server.kill();
  }
  EXPECT_FALSE(server.running());
  server.start();

  EXPECT_THAT(MariadbSession(server, database).rows("SELECT a FROM t"), ElementsAre("1"));
  server.stop();
  EXPECT_FALSE(server.running());
}

TEST(MariadbServer, A_database_that_a_test_leaves_is_named) {
  NEEDS_MARIADB();
  auto& server = shared_mariadb();
  const auto name = server.create_database();
  EXPECT_THAT(server.leftovers(), Contains("database " + name));

  server.drop_database(name);

  EXPECT_THAT(server.leftovers(), Not(Contains("database " + name)));
}

TEST(MariadbServer, Its_shell_runs_scripts_and_says_what_was_refused) {
  NEEDS_MARIADB();
  auto& server = shared_mariadb();
  const auto name = server.create_database();

  const auto good = server.run_shell(name, "SELECT 'ü';\n");
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_EQ(good.output, "ü\n");
  EXPECT_NE(server.run_shell(name, "SELECT nonsense;\n").exit_code, 0);
  server.drop_database(name);
}

}  // namespace
}  // namespace postrider::testing

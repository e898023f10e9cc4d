// The program on PostgreSQL, as a role that may do little.
#include <string>

#include <gmock/gmock.h>

#include "backends/postgres_database.hpp"
#include "cli/program.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A role that goes with the test.
class Reader {
 public:
  explicit Reader(PostgresDatabase& database) : database_(database) {
    const auto session = database_.open_session();
    session->run("DROP ROLE IF EXISTS cli_reader; CREATE ROLE cli_reader LOGIN");
    session->run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO cli_reader");
  }
  ~Reader() {
    const auto session = database_.open_session();
    session->run("DROP OWNED BY cli_reader; DROP ROLE cli_reader");
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] std::string url() const {
    return "postgresql://cli_reader@127.0.0.1:" + std::to_string(database_.server().port()) + "/" +
           database_.name();
  }

 private:
  PostgresDatabase& database_;
};

TEST(CliPostgres, R_224_a_role_that_may_only_select_sees_the_status_and_no_payload) {
  if (lacks_postgres()) return;
  PostgresDatabase database;
  database.migrate();
  const Reader reader(database);
  Workshop shop;
  shop.write("postrider.toml", "store = \"" + reader.url() +
                                   "\"\n[[routes]]\nname = \"all\"\nto = \"file:out.jsonl\"\n");

  const auto empty = shop.run({"status", "--format", "json"});
  EXPECT_EQ(empty.code, 0) << empty.err;
  EXPECT_THAT(empty.out, HasSubstr("\"total\": 0"));
  EXPECT_THAT(empty.out, HasSubstr("\"unrouted\": 0"));
  EXPECT_EQ(shop.run({"status"}).code, 0);

  database.open_session()->run(
      "INSERT INTO outbox_events (type, payload) VALUES ('order.placed', 'c4n4ry')");
  const auto one = shop.run({"status", "--format", "json"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("\"unrouted\": 1"));
  EXPECT_THAT(one.out + one.err, Not(HasSubstr("c4n4ry")));

  const auto refused = shop.run({"route", "pause", "all", "--reason", "to see it refused"});
  EXPECT_NE(refused.code, 0) << "the role is what the test says";
}

}  // namespace
}  // namespace postrider::testing

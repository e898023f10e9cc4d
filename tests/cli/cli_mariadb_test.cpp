// The program on MariaDB, from an empty database on.
#include <string>

#include <gmock/gmock.h>

#include "backends/mariadb_database.hpp"
#include "cli/program.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// An empty database and a folder with a configuration for it.
class MariadbWorkshop {
 public:
  MariadbWorkshop() : name_(shared_mariadb().create_database()) {
    configure("[[routes]]\nname = \"all\"\nto = \"file:out.jsonl\"\n");
  }
  ~MariadbWorkshop() { shared_mariadb().drop_database(name_); }
  MariadbWorkshop(const MariadbWorkshop&) = delete;
  MariadbWorkshop& operator=(const MariadbWorkshop&) = delete;

  void configure(const std::string& routes) {
    shop.write("postrider.toml", "store = \"" + shared_mariadb().url(name_) + "\"\n" + routes);
  }
  [[nodiscard]] const std::string& database() const { return name_; }

  Workshop shop;

 private:
  std::string name_;
};

TEST(CliMariadb, A_raw_insert_is_relayed_after_migrate) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbWorkshop work;
  const auto early = work.shop.run({"relay"});
  EXPECT_NE(early.code, 0);
  EXPECT_THAT(early.err, HasSubstr("postrider migrate"));

  const auto migrated = work.shop.run({"migrate"});
  ASSERT_EQ(migrated.code, 0) << migrated.err;
  const auto inserted = shared_mariadb().run_shell(work.database(), R"(
INSERT INTO outbox_events (aggregate_type, aggregate_id, type, payload)
VALUES ('order', '1', 'order.placed', '{"id":1}');
)");
  ASSERT_EQ(inserted.exit_code, 0) << inserted.output;
  const auto relayed = work.shop.run({"relay"});

  EXPECT_EQ(relayed.code, 0) << relayed.err;
  EXPECT_THAT(work.shop.read("out.jsonl"), HasSubstr(R"("payload":"{\"id\":1}")"));
  const auto status = work.shop.run({"status", "--format", "json"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("\"unrouted\": 0"));
  EXPECT_THAT(work.shop.run({"events"}).out, HasSubstr("order.placed"));
}

TEST(CliMariadb, The_doctor_finds_nothing_wrong_with_a_fresh_one_and_names_a_missing_trigger) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbWorkshop work;
  ASSERT_EQ(work.shop.run({"migrate"}).code, 0);
  const auto healthy = work.shop.run({"doctor"});
  EXPECT_EQ(healthy.code, 0) << healthy.out << healthy.err;
  EXPECT_THAT(healthy.out, HasSubstr("MariaDB"));

  MariadbSession(shared_mariadb(), work.database()).run("DROP TRIGGER outbox_events_before_update");

  const auto ill = work.shop.run({"doctor"});
  EXPECT_NE(ill.code, 0);
  EXPECT_THAT(ill.out, HasSubstr("trigger_missing"));
  EXPECT_THAT(ill.out, HasSubstr("outbox_events_before_update"));
}

TEST(CliMariadb, Jobs_are_refused_and_not_lost_in_silence) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbWorkshop work;
  ASSERT_EQ(work.shop.run({"migrate"}).code, 0);
  work.configure("[[routes]]\nname = \"ship\"\njob = \"Ship\"\nqueue = \"shipping\"\n");

  const auto relay = work.shop.run({"relay"});

  EXPECT_NE(relay.code, 0);
  EXPECT_THAT(relay.err, HasSubstr("MariaDB"));
  EXPECT_THAT(relay.err, HasSubstr("PostgreSQL or SQLite"));
}

TEST(CliMariadb, A_url_that_cannot_be_used_is_told_without_its_password) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbWorkshop work;

  const auto run = work.shop.run({"status", "--store", "mariadb://app:c4n4ry@127.0.0.1"});

  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.err, HasSubstr("names no database"));
  EXPECT_THAT(run.out + run.err, Not(HasSubstr("c4n4ry")));
}

}  // namespace
}  // namespace postrider::testing

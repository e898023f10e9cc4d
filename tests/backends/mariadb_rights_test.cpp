// Which rights suffice, and what the store does with a server that is not as it should be.

#include "backends/mariadb_database.hpp"
#include "conformance/store_builders.hpp"

namespace postrider::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A user that goes with the test; users belong to the whole server.
class SmallUser {
 public:
  SmallUser(const MariadbDatabase& database, const std::string& part)
      : admin_(database.open_session()), name_(part + "_" + database.name()) {
    admin_->run("CREATE USER '" + name_ + "'@'localhost'");
  }
  ~SmallUser() { admin_->refusal("DROP USER '" + name_ + "'@'localhost'"); }
  SmallUser(const SmallUser&) = delete;
  SmallUser& operator=(const SmallUser&) = delete;

  void grant(const std::string& rights, const std::string& table) {
    admin_->run("GRANT " + rights + " ON " + table + " TO '" + name_ + "'@'localhost'");
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::unique_ptr<MariadbSession> admin_;
  std::string name_;
};

TEST(MariadbRights, A_writer_needs_INSERT_on_the_events_and_nothing_else) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  SmallUser writer(database, "w");
  writer.grant("INSERT", "outbox_events");
  MariadbSession session(database.server(), database.name(), writer.name());

  session.run(
      "INSERT INTO outbox_events (aggregate_type, aggregate_id, type) VALUES ('order', '1', 't')");

  EXPECT_EQ(database.open_session()->run("SELECT count(*) FROM outbox_events"), "1");
  EXPECT_EQ(session.refusal("SELECT payload FROM outbox_events"), 1142U);
  EXPECT_EQ(session.refusal("DELETE FROM outbox_aggregates"), 1142U);
}

TEST(MariadbRights, A_relay_works_with_the_rights_that_its_page_names) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  SmallUser user(database, "r");
  user.grant("SELECT", "*");
  user.grant("UPDATE", "outbox_events");
  user.grant("UPDATE", "outbox_partitions");
  user.grant("INSERT, UPDATE, DELETE", "outbox_deliveries");
  user.grant("INSERT", "outbox_routes");
  auto options = database.options();
  options.url = "mariadb://" + user.name() + "@localhost/" + database.name() +
                "?socket=" + database.server().socket();
  const auto store = make_mariadb_store(options);
  ManualClock clock;
  Claimant relay(*store, clock);
  expect_ok(store->check_schema(soon()));
  relay.lease();
  add(*database.open_store(), {order_event("1"), order_event("2")});
  const auto batch = relay.claim();
  ASSERT_THAT(batch.events, SizeIs(2));
  auto request = routing(relay.settle_request(), batch.events[0], {delivery_of(batch.events[0])});
  request.stopped_routes = {"out"};
  request.mark = batch.mark;
  relay.settle(request);
  const auto held = delivery_of(
      batch.events[1], all_of({with_status(DeliveryStatus::held), unordered(), on_route("")}));
  request = relay.settle_request();
  request.deliveries = {held};
  relay.settle(request);
  request = routing(relay.settle_request(), batch.events[1]);
  request.released = {held.id};
  relay.settle(request);

  EXPECT_THAT(relay.held().events, IsEmpty());
  EXPECT_THAT(relay.due().deliveries, SizeIs(1));
  relay.release();
}

TEST(MariadbServerCheck, F51_a_table_without_transactions_is_refused_at_the_start) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  database.open_session()->run("ALTER TABLE outbox_keys ENGINE = Aria");

  const auto checked = database.open_store()->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().disposition, Disposition::stop);
  EXPECT_THAT(checked.error().message, HasSubstr("engine_not_transactional"));
  EXPECT_THAT(checked.error().message, HasSubstr("outbox_keys"));
}

TEST(MariadbServerCheck, Another_number_of_partitions_is_refused_with_both_numbers) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  auto options = database.options();
  options.partitions = 17;

  const auto checked = make_mariadb_store(options)->check_schema(soon());

  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::schema_mismatch);
  EXPECT_THAT(checked.error().message, HasSubstr("64"));
  EXPECT_THAT(checked.error().message, HasSubstr("17"));
}

TEST(MariadbServerCheck, F49_a_payload_over_max_allowed_packet_is_refused_with_the_limit) {
  POSTRIDER_NEEDS_MARIADB();
  MariadbDatabase database;
  const auto store = database.open_store();
  const auto most = database.open_session()->run("SELECT @@max_allowed_packet");

  const auto refused =
      store->add(std::vector{lone_event(std::string(std::stoul(most), 'a'))}, soon());

  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::limit_exceeded);
  EXPECT_THAT(refused.error().message, HasSubstr(most));
  EXPECT_THAT(add(*store, {lone_event()}), SizeIs(1)) << "the connection is as good as before";
}

}  // namespace
}  // namespace postrider::testing

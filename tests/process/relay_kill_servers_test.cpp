// kill -9 of the relay between PostgreSQL and RabbitMQ (F1 to F4), with an inbox behind the queue.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <postrider/libpq.hpp>

#include "outbox/postgres_shop.hpp"
#include "process/relay_line.hpp"

namespace postrider::testing {
namespace {

/// A receiver with an effect that can be counted: one row, in the transaction of the receipt.
class Receiver {
 public:
  explicit Receiver(const std::string& conninfo) : app_(conninfo) {
    app_.must("CREATE TABLE effects (message_id text NOT NULL)");
  }

  void take(const Arrived& arrived) {
    NewEvent said;
    said.type = "order.changed";
    said.aggregate = Aggregate{"order", arrived.aggregate};
    said.payload = arrived.bytes;
    const InboxMessage message{"effects", "shop", arrived.id, content_hash(said)};
    const auto taken = transaction(app_.handle(), [&] {
      return inbox_.process(app_.handle(), message, [&] {
        app_.must("INSERT INTO effects VALUES ('" + arrived.id + "')");
      });
    });
    ASSERT_TRUE(taken) << describe(taken.error());
    if (*taken == InboxResult::duplicate) ++duplicates_;
  }
  [[nodiscard]] std::size_t duplicates() const { return duplicates_; }

 private:
  LibpqConnection app_;
  PostgresInbox inbox_;
  std::size_t duplicates_ = 0;
};

TEST(RelayKill, F1_to_F4_at_50_random_moments_from_PostgreSQL_to_an_inbox_behind_RabbitMQ) {
  if (lacks_servers()) return;
  RelayLine line("kill-run");
  const auto run = line.run();
  expect_survival(line.shop(), run);

  const auto& arrived = line.arrived();
  Receiver receiver(line.database().conninfo());
  for (const auto& one : arrived)
    receiver.take(one);
  EXPECT_GT(receiver.duplicates(), 0U) << "no kill made a repeat, so this run has proved nothing";
  EXPECT_EQ(receiver.duplicates(), repeats_among(arrived));
  EXPECT_EQ(line.count("effects"), run.events);
  EXPECT_EQ(line.sql("SELECT count(DISTINCT message_id) FROM effects"), std::to_string(run.events));
}

}  // namespace
}  // namespace postrider::testing

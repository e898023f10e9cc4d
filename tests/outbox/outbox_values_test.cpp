// Fingerprints of events, without a database.

#include <gmock/gmock.h>

#include <set>

#include <postrider/content_hash.hpp>

#include "base/digest.hpp"

namespace postrider {
namespace {

NewEvent event() {
  NewEvent event;
  event.aggregate = Aggregate{"order", "1"};
  event.type = "order.placed";
  event.payload = "{}";
  event.headers = {{"a", "1"}, {"b", "2"}};
  return event;
}

TEST(Sha256, Is_that_of_the_standard) {
  EXPECT_EQ(to_string(ContentHash{sha256({"a", "bc"})}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ContentHash, Does_not_change_between_releases) {
  // sha256 of "12:order.placed5:order1:116:application/json1:21:a1:11:b1:22:{}"
  EXPECT_EQ(to_string(content_hash(event())),
            "1851c465108afa3c76958f263305e1006a4348228707cb5622ba6d2a7c0aa87a");
}

TEST(ContentHash, Is_the_same_for_a_new_event_and_its_row) {
  Event row;
  row.id = EventId(Uuid({1}));
  row.aggregate = event().aggregate;
  row.type = event().type;
  row.payload = event().payload;
  row.content_type = event().content_type;
  row.headers = event().headers;
  EXPECT_EQ(content_hash(row), content_hash(event()));
}

TEST(ContentHash, Ids_versions_and_times_do_not_count) {
  NewEvent other = event();
  other.id = EventId(Uuid({9}));
  other.aggregate_version = 3;
  other.available_at = Timestamp();
  EXPECT_EQ(content_hash(other), content_hash(event()));
}

TEST(ContentHash, Every_part_counts_and_none_runs_into_the_next) {
  std::set<std::string> hashes = {to_string(content_hash(event()))};
  const auto add = [&](auto change) {
    NewEvent other = event();
    change(other);
    EXPECT_TRUE(hashes.insert(to_string(content_hash(other))).second) << hashes.size();
  };
  add([](NewEvent& e) { e.type = "order.place"; });
  add([](NewEvent& e) { e.payload = "{} "; });
  add([](NewEvent& e) { e.content_type = "text/json"; });
  add([](NewEvent& e) { e.aggregate.reset(); });
  add([](NewEvent& e) { e.aggregate = Aggregate{"orde", "r1"}; });
  add([](NewEvent& e) { e.aggregate = Aggregate{"order1", ""}; });
  add([](NewEvent& e) { e.headers = {}; });
  add([](NewEvent& e) { e.headers = {{"a", "1"}}; });
  add([](NewEvent& e) { e.headers = {{"a", "1b"}, {"", "2"}}; });
  add([](NewEvent& e) { e.headers = {{"a", "1"}, {"b", "3"}}; });
}

}  // namespace
}  // namespace postrider

#include <postrider/testing/memory_publisher.hpp>
#include <postrider/testing/publisher_conformance.hpp>

namespace postrider::testing {
namespace {

class MemoryPublisherHarness final : public PublisherHarness {
 public:
  explicit MemoryPublisherHarness(bool decorated) : decorated_(decorated) {}

  std::unique_ptr<Publisher> open_publisher() override {
    auto publisher = make_memory_publisher(journal_, 1000);
    return decorated_ ? make_flaky_publisher(std::move(publisher), {}) : std::move(publisher);
  }

  std::vector<Received> received() override {
    std::vector<Received> received;
    for (const auto& event : journal_->accepted()) {
      received.push_back({event->id.value().to_string(), event->type, event->payload,
                          event->content_type, event->headers});
    }
    return received;
  }

  bool take_down() override {
    journal_->set_down(true);
    return true;
  }

  bool bring_up() override {
    journal_->set_down(false);
    return true;
  }

 private:
  bool decorated_;
  std::shared_ptr<Journal> journal_ = std::make_shared<Journal>();
};

PublisherCase named(const char* name, bool decorated) {
  return {name, [decorated] { return std::make_unique<MemoryPublisherHarness>(decorated); }};
}

INSTANTIATE_TEST_SUITE_P(Memory, PublisherConformance,
                         ::testing::Values(named("plain", false), named("under_a_decorator", true)),
                         case_name);

}  // namespace
}  // namespace postrider::testing

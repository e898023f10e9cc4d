#pragma once
/// \file
/// The suite that defines a publisher. Link the object library `postrider::publisher_conformance`,
/// and instantiate as with store_conformance.hpp.

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <postrider/publisher.hpp>

namespace postrider::testing {

/// A message as the destination has it, read back by means that share no code with the publisher.
struct Received {
  std::string event_id;
  std::string type;
  std::string payload;
  std::string content_type;
  Headers headers;
};

/// A fresh, empty destination that lives as long as this object.
class PublisherHarness {
 public:
  virtual ~PublisherHarness() = default;
  virtual std::unique_ptr<Publisher> open_publisher() = 0;
  /// Everything that has arrived since the start, in order.
  virtual std::vector<Received> received() = 0;
  /// Takes the destination away and brings it back; false when this destination cannot be.
  virtual bool take_down() = 0;
  virtual bool bring_up() = 0;

  /// Optional: makes the destination keep its connections and answer nothing, and lets it go on;
  /// false when this destination cannot be made to.
  virtual bool freeze() { return false; }
  virtual bool thaw() { return false; }
};

struct PublisherCase {
  std::string name;
  std::function<std::unique_ptr<PublisherHarness>()> make;
};

/// What GoogleTest shows of a case.
void PrintTo(const PublisherCase& publisher_case, std::ostream* out);

class PublisherConformance : public ::testing::TestWithParam<PublisherCase> {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::unique_ptr<PublisherHarness> harness_;
  std::unique_ptr<Publisher> publisher_;
};

[[nodiscard]] std::string case_name(const ::testing::TestParamInfo<PublisherCase>& info);

}  // namespace postrider::testing

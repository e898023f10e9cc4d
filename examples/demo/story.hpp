#pragma once
/// \file
/// What happens in the demo, step by step, and how it is told.

#include <memory>
#include <string>

#include "common/http.hpp"
#include "common/temporary_folder.hpp"
#include "demo/books.hpp"
#include "demo/relay_pass.hpp"
#include "demo/service.hpp"

namespace examples::demo {

/// Thrown after SIGINT or SIGTERM. On its way out everything ends: processes, and the folder.
class Interrupted {};

/// From here on SIGINT and SIGTERM interrupt a story at its next step.
void listen_to_signals();

class Story {
 public:
  explicit Story(bool with_inbox);

  /// Tells everything on standard output. True when every promise was kept.
  bool tell();

 private:
  void orders_come_in_during_an_outage();
  void the_relay_finds_nobody();
  void an_acknowledgement_is_lost();
  void the_receiver_dies_and_the_message_comes_again();
  void a_message_never_arrives();
  void the_message_is_sent_again();
  bool compare_the_books();

  void start_delivery();
  /// POSTs to the shop and tells what it answers.
  void order(const std::string& target, const std::string& body, const std::string& told,
             int expected_status);
  void run_relay(postrider::testing::FaultScript faults = {});

  const bool with_inbox_;
  const TemporaryFolder folder_;
  const std::string shop_path_ = folder_.file("shop.db");
  const std::string delivery_path_ = folder_.file("delivery.db");
  const int delivery_port_;
  std::unique_ptr<Service> shop_;
  std::unique_ptr<Service> delivery_;
  std::unique_ptr<Books> books_;
  bool shop_answered_as_always_ = true;
  bool outage_was_free_ = true;
};

}  // namespace examples::demo

#include "spool.hpp"

namespace postrider::testing {
namespace {

// [instantiate]
INSTANTIATE_TEST_SUITE_P(Spool, PublisherConformance,
                         ::testing::Values(PublisherCase{
                             "plain", [] { return std::make_unique<spool::SpoolHarness>(); }}),
                         case_name);
// [instantiate]

}  // namespace
}  // namespace postrider::testing

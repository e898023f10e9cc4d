#include "wrapped_store.hpp"

namespace postrider::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Wrapped, StoreConformance,
                         ::testing::Values(StoreCase{
                             "plain", [] { return std::make_unique<wrapped::WrappedHarness>(); }}),
                         case_name);

}  // namespace
}  // namespace postrider::testing

// These programs use the builders of the store's suite; tests/backends runs the suite itself.

#include <postrider/testing/store_conformance.hpp>

namespace postrider::testing {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

}  // namespace postrider::testing

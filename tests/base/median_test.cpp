#include "etc_core/base/median.h"

#include "tests/support/catch.h"

namespace {

TEST_CASE("the median is the middle value, or the mean of the two in the middle", "[base]") {
  CHECK(etc::median({7}) == 7);
  CHECK(etc::median({9, 1, 5}) == 5);
  CHECK(etc::median({8, 1, 2, 100}) == 5);
  CHECK(etc::median({3, 1}) == 2);
}

}  // namespace

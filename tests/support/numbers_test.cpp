#include "tests/support/numbers.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/worst.h"

using namespace etc::test;

TEST_CASE("numbers are near within the tolerance, and a nan or an infinity only to itself", "[support]") {
  const std::vector<double> expected = {1, -2, 0, 4};
  REQUIRE(near_all("same", {1, -2, 0, 4}, expected, 0));
  REQUIRE(near_all("absolute", {1.5f, -2, 0, 4}, expected, 0.5));
  REQUIRE_FALSE(near_all("absolute", {1.5f, -2, 0, 4}, expected, 0.25));
  REQUIRE(near_all("relative", {1, -3, 0, 4}, expected, 0, 0.5));
  REQUIRE_FALSE(near_all("relative", {1, -2, 0.5f, 4}, expected, 0, 0.5));
  REQUIRE(near_each("each", {1, -2, 0, 5}, expected, {0, 0, 0, 1}));
  REQUIRE_FALSE(near_each("each", {1, -2, 1, 4}, expected, {1, 1, 0, 1}));
  REQUIRE_FALSE(near_all("too few", {1, -2, 0}, expected, 1));
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    for (std::size_t i = 0; i < 4; ++i) {  // also if close, but not equal, numbers follow
      CAPTURE(bad, i);
      const std::vector<float> near = {1.25f, -2.25f, 0.25f, 4.25f};
      std::vector<float> got = near;
      got[i] = bad;
      REQUIRE_FALSE(near_all("bad", got, expected, 1, 1));
      std::vector<double> same = expected;
      same[i] = bad;
      REQUIRE(near_all("same bad", got, same, 1));
      REQUIRE_FALSE(near_all("expected bad", near, same, 1));
    }
  }
}

TEST_CASE("of many differences the worst is kept, and nan or another length is infinite", "[support]") {
  double worst = 0;
  keep_worst(worst, 0.5);
  keep_worst(worst, 0.25);
  CHECK(worst == 0.5);
  keep_worst(worst, NAN);
  CHECK(worst == HUGE_VAL);
  keep_worst(worst, 1);
  CHECK(worst == HUGE_VAL);
  const std::vector<float> got = {1, -3};
  CHECK(worst_difference({2, -2}, got, 1, 0) == 1);
  CHECK(worst_difference({1, -2}, got, 0, 0.25) == 2);
  CHECK(worst_difference({1, NAN}, got, 1, 1) == HUGE_VAL);
  CHECK(worst_difference({NAN, -3}, got, 1, 1) == HUGE_VAL);
  CHECK(worst_difference({1, -3, 0}, got, 1, 1) == HUGE_VAL);
}

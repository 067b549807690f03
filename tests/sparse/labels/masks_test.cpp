#include "sparse/labels/masks.h"

#include "tests/support/catch.h"

using namespace etc::sparse;
using Ids = std::vector<std::int32_t>;

TEST_CASE("ending and starting breakpoints of the same segments agree", "[labels]") {
  const Ids ends{0, 1, 0, 1, 0, 0}, starts{0, 0, 1, 0, 1, 0}, segments{0, 0, 1, 1, 2, 2};
  REQUIRE(segments_from_breakpoints(ends) == segments);
  REQUIRE(segments_from_breakpoints(starts, Breakpoints::starting) == segments);
  REQUIRE(mask_from_breakpoints(ends) == segmented_mask(segments));
  REQUIRE(local_mask_from_breakpoints(starts, 2, Breakpoints::starting) == local_segmented_mask(segments, 2));
}

TEST_CASE("example ids count breakpoints from the end and padding is 0", "[labels]") {
  REQUIRE(example_ids_from_breakpoints(Ids{0, 1, 0, 0, 1, 0, 0, 0, 1, 0}) == Ids{3, 3, 2, 2, 2, 1, 1, 1, 1, 0});
  REQUIRE(example_ids_from_breakpoints(Ids{}).empty());
}

TEST_CASE("padding sees padding", "[labels]") {
  REQUIRE(segmented_mask(Ids{1, 1, 0}) == Ids{1, 1, 0, 1, 1, 0, 0, 0, 1});
}

TEST_CASE("segments need not be contiguous", "[labels]") {
  REQUIRE(segmented_mask(Ids{4, 7, 4}) == Ids{1, 0, 1, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("local masks are those of etc-core 4.4", "[labels]") {
  REQUIRE(local_segmented_mask(Ids{4, 3, 3, 3, 4, 1, 1, 1}, 2) == Ids{0, 0, 1, 0, 0,  //
                                                                      0, 0, 1, 1, 1,  //
                                                                      0, 1, 1, 1, 0,  //
                                                                      1, 1, 1, 0, 0,  //
                                                                      0, 0, 1, 0, 0,  //
                                                                      0, 0, 1, 1, 1,  //
                                                                      0, 1, 1, 1, 0,  //
                                                                      1, 1, 1, 0, 0});
  REQUIRE(local_segmented_mask(Ids{0, 0}, 3) == Ids{0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0});
}

TEST_CASE("impossible arguments of masks are errors", "[labels]") {
  REQUIRE_THROWS_WITH(local_segmented_mask(Ids{1, 1}, 0), "masks: local_radius must be at least 1, got 0");
  REQUIRE_THROWS_WITH(local_segmented_mask(Ids{1, -2}, 1), "masks: segment ids must not be negative, got -2 at 1");
}

#include "sparse/labels/relative_ids.h"

#include "tests/support/catch.h"

using namespace etc::sparse;
using Ids = std::vector<std::int32_t>;

TEST_CASE("ids count 1 to k to the right and k+1 to 2k to the left", "[labels]") {
  REQUIRE(relative_id(0, 3) == 0);
  REQUIRE(relative_id(2, 3) == 2);
  REQUIRE(relative_id(9, 3) == 3);
  REQUIRE(relative_id(-1, 3) == 4);
  REQUIRE(relative_id(-9, 3) == 6);
  REQUIRE(relative_id(-9, 3, Direction::ignored) == 3);
}

TEST_CASE("the ids beyond the distances follow them directly", "[labels]") {
  REQUIRE(distance_id_count(12) == 25);
  REQUIRE(distance_id_count(12, Direction::ignored) == 13);
  REQUIRE(not_member_id(12) == 25);
  REQUIRE(member_id(12) == 26);
  REQUIRE(other_paragraph_id(12) == 27);
}

TEST_CASE("full ids are those of etc-core 4.3", "[labels]") {
  REQUIRE(full_relative_ids(6, 3) == Ids{0, 1, 2, 3, 3, 3,  //
                                         4, 0, 1, 2, 3, 3,  //
                                         5, 4, 0, 1, 2, 3,  //
                                         6, 5, 4, 0, 1, 2,  //
                                         6, 6, 5, 4, 0, 1,  //
                                         6, 6, 6, 5, 4, 0});
  REQUIRE(full_relative_ids(5, 9) == Ids{0,  1,  2,  3,  4,  //
                                         10, 0,  1,  2,  3,  //
                                         11, 10, 0,  1,  2,  //
                                         12, 11, 10, 0,  1,  //
                                         13, 12, 11, 10, 0});
  REQUIRE(full_relative_ids(4, 3, Direction::ignored) == Ids{0, 1, 2, 3, 1, 0, 1, 2, 2, 1, 0, 1, 3, 2, 1, 0});
}

TEST_CASE("local ids are the same in every row, also at the ends", "[labels]") {
  const Ids row{6, 6, 6, 5, 4, 0, 1, 2, 3, 3, 3};
  Ids three = row;
  for (int i = 0; i < 2; ++i) three.insert(three.end(), row.begin(), row.end());
  REQUIRE(local_relative_ids(3, 5, 3) == three);
  REQUIRE(local_relative_ids(1, 4, 9) == Ids{13, 12, 11, 10, 0, 1, 2, 3, 4});
  REQUIRE(local_relative_ids(1, 4, 4) == Ids{8, 7, 6, 5, 0, 1, 2, 3, 4});
}

TEST_CASE("a maximum distance of 0 gives zeros", "[labels]") {
  REQUIRE(full_relative_ids(3, 0) == Ids(9, 0));
  REQUIRE(local_relative_ids(2, 2, 0) == Ids(10, 0));
}

TEST_CASE("ids between different segments are overwritten and others keep their distance", "[labels]") {
  const Ids segments{10, 20, 20, 10, 10};
  REQUIRE(overwrite_outside_segments(full_relative_ids(5, 3), segments, 100) == Ids{0,   100, 100, 3,   3,    //
                                                                                    100, 0,   1,   100, 100,  //
                                                                                    100, 4,   0,   100, 100,  //
                                                                                    6,   100, 100, 0,   1,    //
                                                                                    6,   100, 100, 4,   0});
}

TEST_CASE("impossible arguments of ids are errors", "[labels]") {
  REQUIRE_THROWS_WITH(full_relative_ids(0, 3), "relative_ids: the sequence must have at least one token, got 0");
  REQUIRE_THROWS_WITH(full_relative_ids(3, -1), "relative_ids: relative_pos_max_distance must not be negative, got -1");
  REQUIRE_THROWS_WITH(local_relative_ids(3, 0, 1), "relative_ids: local_radius must be at least 1, got 0");
  REQUIRE_THROWS_WITH(local_relative_ids(0, 1, 1), Catch::Contains("at least one token"));
  REQUIRE_THROWS_WITH(overwrite_outside_segments(Ids(9), Ids(2), 1),
                      "relative_ids: expected ids [2, 2] for 2 segment ids, got 9 ids");
}

#include "sparse/labels/relative_ids.h"

#include "tests/support/catch.h"

using namespace etc::sparse;

TEST_CASE("ids count 1 to k to the right and k+1 to 2k to the left", "[labels]") {
  REQUIRE(relative_id(0, 3) == 0);
  REQUIRE(relative_id(2, 3) == 2);
  REQUIRE(relative_id(9, 3) == 3);
  REQUIRE(relative_id(-1, 3) == 4);
  REQUIRE(relative_id(-9, 3) == 6);
}

TEST_CASE("the ids beyond the distances follow them directly", "[labels]") {
  REQUIRE(distance_id_count(12) == 25);
  REQUIRE(not_member_id(12) == 25);
  REQUIRE(member_id(12) == 26);
  REQUIRE(other_paragraph_id(12) == 27);
}

#include "tasks/train/first_fault.h"

#include <limits>

#include "tests/support/catch.h"

namespace {

using etc::Purpose;
using etc::Tensor;

TEST_CASE("tensors of a checkpoint with a number that is none are refused by name", "[tasks]") {
  std::vector<float> numbers(600'000, 1);  // more than one block
  const auto check = [&] {
    etc::require_sound_tensors(etc::one_process(),
                               {{"a/adam_m", Tensor::from({1, 2}, {2}, Purpose::moments)},
                                {"a/adam_v", Tensor::from(numbers, {600, 1000}, Purpose::moments)}},
                               7);
  };
  CHECK_NOTHROW(check());
  numbers[555'123] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH(check(),
                    "train: after step 7: state: a/adam_v [600, 1000] has 1 nan or inf (first at row 555, column 123)");
  CHECK_THROWS_AS(check(), etc::Diverged);
  numbers[3'000] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(check(), Catch::Contains("has 2 nan or inf (first at row 3, column 0)"));
}

}  // namespace

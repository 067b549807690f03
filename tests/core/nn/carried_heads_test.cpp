// Queries and keys of several layers, joined head by head.
#include "etc_core/nn/carried_heads.h"

#include "etc_core/nn/backends.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

namespace etc::test {
namespace {

using Numbers = std::vector<float>;

Numbers numbers_of(const Var& x) {
  return {x.value().data(), x.value().data() + x.value().size()};
}

Var matrix(const Numbers& numbers, std::int64_t rows) {
  return Var(Tensor::from(numbers, {rows, std::ssize(numbers) / rows}, Purpose::activations));
}

TEST_CASE("heads of layers lie side by side, head by head", "[nn]") {
  register_cpu_backend();
  Tape tape(Recording::off);
  const HeadSizes sizes{2, 1};
  // Two tokens with two heads of one number, in three layers.
  const Var one = matrix({1, 2, 3, 4}, 2), two = matrix({0, 0, 5, 6, 0, 0, 7, 8}, 2),
            three = matrix({9, 10, 11, 12}, 2);
  const Var second = head_rows(tape, {two, 2}, sizes);  // columns of a wider matrix
  CHECK(numbers_of(second) == Numbers{5, 6, 7, 8});
  Var joined = join_heads(tape, Var(), head_rows(tape, {one, 0}, sizes), sizes);
  joined = join_heads(tape, joined, second, sizes);
  CHECK(numbers_of(joined) == Numbers{1, 5, 2, 6, 3, 7, 4, 8});
  joined = join_heads(tape, joined, head_rows(tape, {three, 0}, sizes), sizes);
  CHECK(numbers_of(joined) == Numbers{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  CHECK(joined.value().rows() == 2);
  CHECK(numbers_of(first_of_heads(tape, joined, 3, sizes)) == Numbers{1, 2, 3, 4});
  CHECK(numbers_of(pad_heads(tape, second, 3, sizes)) == Numbers{5, 0, 0, 6, 0, 0, 7, 0, 0, 8, 0, 0});
}

TEST_CASE("gradients of joined, padded and chosen heads are those of their values", "[nn]") {
  register_cpu_backend();
  const HeadSizes sizes{2, 3};
  check_gradients(
      [&](Tape& tape, const std::vector<Var>& x) {
        const Var first = join_heads(tape, Var(), head_rows(tape, {x[0], 0}, sizes), sizes);
        const Var joined = join_heads(tape, first, head_rows(tape, {x[1], 0}, sizes), sizes);
        return std::vector<Var>{joined, pad_heads(tape, head_rows(tape, {x[1], 0}, sizes), 2, sizes),
                                first_of_heads(tape, x[2], 2, sizes)};
      },
      {noise({4, 6}, 1), noise({4, 6}, 2), noise({4, 12}, 3)}, {});
}

}  // namespace
}  // namespace etc::test

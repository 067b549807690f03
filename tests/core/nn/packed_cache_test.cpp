#include "etc_core/nn/packed_cache.h"
#include "etc_core/nn/backends.h"

#include "etc_core/nn/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;

namespace {

std::vector<float> values(const Var& y) {
  return {y.value().data(), y.value().data() + y.value().size()};
}

}  // namespace

TEST_CASE("packed layers side by side give what each gives alone, with and without a bias", "[nn]") {
  register_cpu_backend();
  constexpr std::int64_t kRows = 3, kIn = 8;
  constexpr Initializer kNormal{Initializer::Kind::truncated_normal, 0.5f};
  ParameterSet set;
  std::vector<Dense::Part> parts;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t out = 5 + 2 * i;
    Parameter& kernel = set.add("kernel_" + std::to_string(i), {kIn, out}, kNormal);
    Parameter& bias = set.add("bias_" + std::to_string(i), {out}, kNormal);
    parts.push_back({&kernel, i % 2 == 0 ? nullptr : &bias});
  }
  set.initialize(1);
  Tape tape(Recording::off);
  const Var x(Tensor::from(test::random_floats(kRows * kIn, 2), {kRows, kIn}, Purpose::activations));
  PackedCache cache;
  Dense together;
  together.parts = parts;
  const Dense packed = cache.packed(together);
  const std::vector<float> all = values(linear(tape, x, packed));
  std::int64_t column = 0;
  for (const Dense::Part& part : parts) {
    Dense alone;
    alone.parts = {part};
    const std::vector<float> expected = values(linear(tape, x, alone));
    const std::int64_t out = alone.out();
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t j = 0; j < out; ++j) {
        CAPTURE(column, row, j);
        REQUIRE(all[static_cast<std::size_t>(row * packed.out() + column + j)] ==
                Approx(expected[static_cast<std::size_t>(row * out + j)]).margin(1e-6));
      }
    }
    column += out;
  }
}

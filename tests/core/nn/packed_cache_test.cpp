#include "etc_core/nn/packed_cache.h"
#include "etc_core/nn/backends.h"

#include "etc_core/nn/etc_encoder.h"
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

TEST_CASE("layers read in place give the bits of packed ones, and are packed for a longer pass", "[nn]") {
  register_cpu_backend();
  constexpr std::int64_t kIn = 100, kColumns = 192;
  constexpr Initializer kNormal{Initializer::Kind::truncated_normal, 0.5f};
  ParameterSet set;
  Dense together, alone;
  for (int i = 0; i < 3; ++i) {
    together.parts.push_back({&set.add("kernel_" + std::to_string(i), {kIn, kColumns}, kNormal),
                              &set.add("bias_" + std::to_string(i), {kColumns}, kNormal)});
  }
  alone.parts = {{&set.add("kernel", {kIn, 1024}, kNormal), nullptr}};
  set.initialize(1);
  Tape tape(Recording::off);
  for (const std::int64_t rows : {1, 16, 63, 64, 200}) {
    CAPTURE(rows);
    const Var x(Tensor::from(test::random_floats(rows * kIn, 2), {rows, kIn}, Purpose::activations));
    PackedCache packed, later;
    std::vector<std::vector<float>> expected;
    for (const Dense& dense : {together, alone}) expected.push_back(values(linear(tape, x, packed.packed(dense))));
    later.release_later({{together, alone}}, ComputeType::fp32);
    later.begin_pass(rows);
    for (std::size_t i = 0; i < 2; ++i) {
      const Dense dense = later.packed(i == 0 ? together : alone);
      CHECK(dense.packed == nullptr);
      CHECK(values(linear(tape, x, dense)) == expected[i]);
    }
    CHECK_THROWS_WITH(later.begin_training(), Catch::Contains("the kernels were released"));
  }
  PackedCache cache;
  cache.release_later({{together}, {alone}}, ComputeType::fp32);
  for (int pass = 0; pass < 3; ++pass) cache.begin_pass(512);
  CHECK(set.at("kernel").value);
  cache.begin_pass(513);
  CHECK_FALSE(set.at("kernel").value);
  CHECK_FALSE(set.at("kernel_2").value);
  CHECK(cache.packed(alone).packed != nullptr);
}

TEST_CASE("layers side by side whose columns are no whole tiles are packed at once", "[nn]") {
  register_cpu_backend();
  ParameterSet set;
  Dense dense;
  for (int i = 0; i < 2; ++i) dense.parts.push_back({&set.add("kernel_" + std::to_string(i), {8, 100}, {}), nullptr});
  set.initialize(1);
  PackedCache cache;
  cache.release_later({{dense}}, ComputeType::fp32);
  CHECK_FALSE(set.at("kernel_0").value);
  CHECK(cache.packed(dense).packed != nullptr);
}

// Products of bytes are exact with every kernel.
#include <algorithm>
#include <cstring>

#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/register.h"
#include "tests/core/ops/linear_support.h"
#include "tests/support/aligned_bytes.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::ops::cpu;
using etc::test::Bytes64;

namespace {

// Operands of a product [m, k] by [k, n]: the largest magnitudes among others, so that sums of 16 bits would overflow.
struct Operands {
  Operands(std::int64_t m_, std::int64_t n_, std::int64_t k_) : m(m_), n(n_), k(k_) {
    const auto a = test::random_floats(m * k, 1), b = test::random_floats(k * n, 2);
    for (const float value : a) x.push_back(value > 0 ? 255 : static_cast<std::uint8_t>(128 + 127 * value));
    for (const float value : b)
      w.push_back(static_cast<std::int8_t>(value > 0.5f ? 127 : value < -0.5f ? -127 : 90 * value));
  }
  std::vector<std::int32_t> product() const {
    std::vector<std::int32_t> y;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::int32_t sum = 0;
        for (std::int64_t c = 0; c < k; ++c) {
          sum += x[static_cast<std::size_t>(i * k + c)] * w[static_cast<std::size_t>(c * n + j)];
        }
        y.push_back(sum);
      }
    }
    return y;
  }
  std::int64_t m, n, k;
  std::vector<std::uint8_t> x;
  std::vector<std::int8_t> w;
};

// The product computed by a kernel, group by group; checks that memory around each group's result is unchanged.
std::vector<std::int32_t> product_of(const ReducedKernel& kernel, const Operands& of) {
  constexpr std::int64_t kGuards = 64;
  constexpr auto kGuard = std::byte{0x5A};
  const std::int64_t stride = kernel.row_bytes();
  Bytes64 x(of.m * stride), packed(kernel.packed_bytes()), scratch(kernel.scratch_bytes(of.m) + 64);
  Bytes64 y(of.m * kernel.group_cols() * 4 + 2 * kGuards);
  std::memset(x.bytes, 0, static_cast<std::size_t>(of.m * stride));
  for (std::int64_t i = 0; i < of.m; ++i) {
    std::memcpy(x.bytes + i * stride, of.x.data() + i * of.k, static_cast<std::size_t>(of.k));
  }
  kernel.pack(of.w.data(), packed.bytes);
  std::vector<std::int32_t> all(static_cast<std::size_t>(of.m * of.n));
  kernel.begin();
  for (std::int64_t col = 0; col < of.n; col += kernel.group_cols()) {
    const std::int64_t cols = std::min(kernel.group_cols(), of.n - col), bytes = of.m * cols * 4;
    std::fill_n(y.bytes, bytes + 2 * kGuards, kGuard);
    ReducedRun run;
    run.rows = of.m;
    run.x = x.bytes;
    run.packed = packed.bytes;
    run.first_col = col;
    run.scratch = scratch.bytes;
    run.y = y.bytes + kGuards;
    kernel.run(run);
    for (std::int64_t i = 0; i < of.m; ++i) {
      std::memcpy(all.data() + i * of.n + col, y.bytes + kGuards + i * cols * 4, static_cast<std::size_t>(cols) * 4);
    }
    const auto intact = [&](const std::byte* guards) {
      return std::all_of(guards, guards + kGuards, [](std::byte b) { return b == kGuard; });
    };
    REQUIRE(intact(y.bytes));
    REQUIRE(intact(y.bytes + kGuards + bytes));
  }
  kernel.end();
  return all;
}

const std::int64_t kShapes[][3] = {{16, 1, 1},    {16, 5, 2},     {64, 16, 3},     {32, 17, 511}, {64, 192, 512},
                                   {48, 97, 513}, {64, 192, 768}, {16, 193, 1025}, {64, 31, 3072}};

}  // namespace

TEST_CASE("products of bytes by pairs are exact where sums of 16 bits would overflow, and touch nothing else",
          "[reduced]") {
  ops::register_cpu_ops();
  for (const auto& [m, n, k] : kShapes) {
    CAPTURE(m, n, k);
    const Operands of(m, n, k);
    REQUIRE(product_of(*int8_pairs_kernel(n, k), of) == of.product());
  }
}

TEST_CASE("all kernels for products of bytes that this processor has give the same sums", "[reduced]") {
  ops::register_cpu_ops();
  for (const auto& [m, n, k] : kShapes) {
    CAPTURE(m, n, k);
    const Operands of(m, n, k);
    const auto expected = product_of(*int8_pairs_kernel(n, k), of);
    if (const auto tiles = amx_kernel(ComputeType::int8, n, k)) CHECK(product_of(*tiles, of) == expected);
    const auto vectors = avx512_kernel(ComputeType::int8, n, k);
    CHECK((vectors != nullptr) == cpu_has_avx512(ComputeType::int8));
    if (vectors != nullptr) CHECK(product_of(*vectors, of) == expected);
  }
}

TEST_CASE("int8 is offered by every processor, and bf16 is refused where there are no instructions for it",
          "[reduced]") {
  ops::register_cpu_ops();
  CHECK(cpu_offers(ComputeType::int8));
  const std::vector<float> weight(4, 1.0f);
  using Catch::Matchers::Contains;
  if (cpu_offers(ComputeType::bf16)) return;
  CHECK_THROWS_WITH(ops::pack_weights(Device::cpu, {weight.data(), 2, 2}, ComputeType::bf16),
                    Contains("linear: no bf16 products on this processor") && Contains(instruction_set()));
}

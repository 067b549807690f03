// Products of bf16 with every kernel, added to a part of a larger array.
#include <cstring>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/register.h"
#include "tests/support/aligned_bytes.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::ops::cpu;
using etc::test::Bytes64;

namespace {

// Small integers: every sum is exact, in any order.
float small(std::int64_t i) {
  return static_cast<float>(i * 7919 % 17 - 8);
}

// Bf16 numbers small(first), small(first + 1), ...
std::vector<Bf16> small_numbers(std::int64_t count, std::int64_t first) {
  std::vector<Bf16> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back({bf16_from_float(small(first + i))});
  return numbers;
}

struct Case {
  std::int64_t m, n, k;
};

// y[i, j] of x [m, k]·w [k, n], x = small(0 ...), w = small(3 ...).
float exact_sum(const Case& of, std::int64_t i, std::int64_t j) {
  float sum = 0;
  for (std::int64_t c = 0; c < of.k; ++c) sum += small(i * of.k + c) * small(3 + c * of.n + j);
  return sum;
}

// The kernel's products are added to the middle of an array that is wider and higher than y.
void check_added(const ReducedKernel& kernel, const Case& of) {
  constexpr std::int64_t kAround = 5;  // numbers left and right of y, rows above and below
  const std::int64_t width = of.n + 2 * kAround, x_rows = (of.m + 15) / 16 * 16;
  const std::int64_t x_row = kernel.row_bytes();
  Bytes64 x(x_rows * x_row), packed(kernel.packed_bytes());
  std::memset(x.bytes, 0, static_cast<std::size_t>(x_rows * x_row));
  const auto x_numbers = small_numbers(of.m * of.k, 0), w = small_numbers(of.k * of.n, 3);
  for (std::int64_t i = 0; i < of.m; ++i) {
    std::memcpy(x.bytes + i * x_row, x_numbers.data() + i * of.k, static_cast<std::size_t>(of.k) * 2);
  }
  kernel.pack(w.data(), packed.bytes);
  std::vector<float> all;  // [m + 2·kAround, width]
  for (std::int64_t i = 0; i < (of.m + 2 * kAround) * width; ++i) all.push_back(small(i + 1));
  kernel.begin();
  for (std::int64_t col = 0; col < of.n; col += kernel.group_cols()) {
    ReducedRun run;
    run.rows = of.m;
    run.x = x.bytes;
    run.packed = packed.bytes;
    run.first_col = col;
    run.y = all.data() + kAround * width + kAround + col;
    run.y_row_bytes = width * 4;
    run.add = true;
    kernel.run(run);
  }
  kernel.end();
  for (std::int64_t i = 0; i < of.m + 2 * kAround; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t row = i - kAround, col = j - kAround;
      const bool inside = row >= 0 && row < of.m && col >= 0 && col < of.n;
      const float expected = small(i * width + j + 1) + (inside ? exact_sum(of, row, col) : 0);
      CAPTURE(row, col);
      REQUIRE(all[static_cast<std::size_t>(i * width + j)] == expected);
    }
  }
}

}  // namespace

TEST_CASE("products of bf16 are added to a part of an array and touch nothing beside it, with every kernel",
          "[reduced]") {
  ops::register_cpu_ops();
  for (const Case& of : {Case{16, 32, 32}, Case{1, 1, 1}, Case{64, 192, 512}, Case{23, 50, 65}, Case{41, 97, 96}}) {
    CAPTURE(of.m, of.n, of.k);
    if (const auto tiles = amx_kernel(ComputeType::bf16, of.n, of.k)) check_added(*tiles, of);
    if (const auto vectors = avx512_kernel(ComputeType::bf16, of.n, of.k)) check_added(*vectors, of);
  }
}

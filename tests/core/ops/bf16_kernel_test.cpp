// Products of bf16 with every kernel: added to a part of a larger array, and of rows that are read where they are.
#include <algorithm>
#include <cstring>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/linear.h"
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
  const std::int64_t x_row = (of.k * 2 + 63) / 64 * 64 + 192;  // further apart than the kernel would have them
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
    run.x_row_bytes = x_row;
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

TEST_CASE("a bf16 layer has the same bits for rows that it reads where they are and rows that it copies", "[reduced]") {
  ops::register_cpu_ops();
  if (!cpu_offers(ComputeType::bf16)) return;
  for (const Case& of : {Case{48, 100, 64}, Case{80, 192, 96}, Case{160, 40, 3072}}) {
    CAPTURE(of.m, of.n, of.k);
    std::vector<float> w;
    for (std::int64_t i = 0; i < of.k * of.n; ++i) w.push_back(0.37f * small(i) + 0.001f);
    const auto packed = ops::pack_weights(Device::cpu, {w.data(), of.k, of.n}, ComputeType::bf16);
    const auto x = small_numbers(of.m * of.k, 0);
    const std::int64_t stride = of.k + 32;
    const auto layer = [&](std::int64_t rows, std::int64_t offset) {  // of numbers behind a cache line's beginning
      Bytes64 memory((rows * stride + offset) * 2);
      auto* const at = reinterpret_cast<Bf16*>(memory.bytes) + offset;
      for (std::int64_t i = 0; i < rows; ++i) {
        std::copy_n(x.data() + i * of.k, of.k, at + i * stride);
        std::fill_n(at + i * stride + of.k, i + 1 < rows ? 32 : 0, Bf16{0x7fc0});  // NaN between the rows
      }
      std::vector<float> y(static_cast<std::size_t>(rows * of.n));
      ops::LinearForward a{.rows = rows, .in = of.k, .out = of.n, .x_bf16 = at, .x_stride = stride};
      a.packed = &packed;
      a.y = y.data();
      a.y_stride = of.n;
      ops::linear(Device::cpu, a);
      return y;
    };
    const auto in_place = layer(of.m, 0), copied = layer(of.m, 1), fewer = layer(of.m - 1, 0);
    CHECK(in_place == copied);
    CHECK(std::equal(fewer.begin(), fewer.end(), in_place.begin()));
  }
}

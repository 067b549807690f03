// The emulated warp operations compared with plain matrix loops, with the register layouts of the PTX manual.
#include <cmath>
#include <vector>

#include "etc_core/base/cuda/simt.h"
#include "tests/support/catch.h"

using namespace etc;

namespace {

struct OneWarp : simt::BlockOf<32> {
  struct Params {
    void (*body)(const simt::Span<float>& in, const simt::Span<float>& out);
    simt::Span<float> in, out;
  };
  static const char* name() { return "one warp"; }
  static void run(const Params& p) { p.body(p.in, p.out); }
};

std::vector<float> run(std::vector<float> in, std::size_t results,
                       void (*body)(const simt::Span<float>&, const simt::Span<float>&)) {
  std::vector<float> out(results);
  simt::launch<OneWarp>(
      {1, 1, 1, 8192},
      {body, {in.data(), static_cast<std::int64_t>(in.size())}, {out.data(), static_cast<std::int64_t>(out.size())}},
      nullptr);
  return out;
}

// Small integers: exact in bf16, and so are their products and sums in fp32.
float number(int i) {
  return static_cast<float>(i * 37 % 23 - 11);
}

}  // namespace

TEST_CASE("shuffles and votes see every lane", "[simt]") {
  const std::vector<float> out = run({}, 128, [](const simt::Span<float>&, const simt::Span<float>& result) {
    const int lane = simt::lane_index();
    simt::store(result, lane, static_cast<float>(simt::shuffle_xor(lane, 5)));
    simt::store(result, 32 + lane, simt::shuffle(0.5f * static_cast<float>(lane), 7));
    simt::store(result, 64 + lane, simt::any(lane == 9) && !simt::any(lane > 40) ? 1.0f : 0.0f);
    simt::store(result, 96 + lane, simt::all(lane < 32) && !simt::all(lane < 31) ? 1.0f : 0.0f);
  });
  for (std::size_t lane = 0; lane < 32; ++lane) {
    CHECK(out[lane] == static_cast<float>(lane ^ 5));
    CHECK(out[32 + lane] == 3.5f);
    CHECK(out[64 + lane] == 1.0f);
    CHECK(out[96 + lane] == 1.0f);
  }
}

TEST_CASE("load_matrix and mma multiply two matrices", "[simt]") {
  // a [16, 16] row-major; b [8, 16], transposed, in the layout of keys; b2 [16, 8] in the layout of values.
  std::vector<float> in;
  for (int i = 0; i < 16 * 16 + 2 * 16 * 8; ++i) in.push_back(number(i));
  const std::vector<float> out = run(in, 2 * 128, [](const simt::Span<float>& from, const simt::Span<float>& result) {
    simt::SharedArena arena;
    const auto a_tile = arena.take<simt::Bf16>(16 * 24), b_tile = arena.take<simt::Bf16>(8 * 24);
    const auto b2_tile = arena.take<simt::Bf16>(16 * 8);
    const int lane = simt::lane_index();
    for (int i = lane; i < 256; i += 32) a_tile.store(i / 16 * 24 + i % 16, simt::to_bf16(simt::load(from, i)));
    for (int i = lane; i < 128; i += 32) b_tile.store(i / 16 * 24 + i % 16, simt::to_bf16(simt::load(from, 256 + i)));
    for (int i = lane; i < 128; i += 32) b2_tile.store(i, simt::to_bf16(simt::load(from, 384 + i)));
    simt::sync_warp();
    std::uint32_t a[4], b[4], b2[4];
    simt::load_matrix(a_tile, lane % 16 * 24 + lane / 16 * 8, a);
    simt::load_matrix(b_tile, lane % 8 * 24 + lane / 8 % 2 * 8, b);
    simt::load_matrix_transposed(b2_tile, lane % 16 * 8, b2);
    float c[4] = {1.0f, 1.0f, 1.0f, 1.0f}, c2[4] = {};
    simt::mma(c, a, b[0], b[1]);
    simt::mma(c2, a, b2[0], b2[1]);
    for (int e = 0; e < 4; ++e) {
      const int at = (lane / 4 + e / 2 * 8) * 8 + lane % 4 * 2 + e % 2;
      simt::store(result, at, c[e]);
      simt::store(result, 128 + at, c2[e]);
    }
  });
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 1.0f, sum2 = 0.0f;
      for (int k = 0; k < 16; ++k) {
        sum += number(row * 16 + k) * number(256 + column * 16 + k);
        sum2 += number(row * 16 + k) * number(384 + k * 8 + column);
      }
      CHECK(out[static_cast<std::size_t>(row * 8 + column)] == sum);
      CHECK(out[static_cast<std::size_t>(128 + row * 8 + column)] == sum2);
    }
  }
}

TEST_CASE("bf16 rounds to the nearest, ties to even", "[simt]") {
  const auto rounded = [](float x) { return float_from_bf16(simt::to_bf16(x).bits); };
  CHECK(rounded(1.0f) == 1.0f);
  CHECK(rounded(1.0f + 0x1p-8f) == 1.0f);              // tie, down to even
  CHECK(rounded(1.0f + 0x3p-8f) == 1.0f + 0x1p-6f);    // tie, up to even
  CHECK(rounded(1.0f + 0x1.1p-8f) == 1.0f + 0x1p-7f);  // just above a tie
  CHECK(rounded(-3.4e38f) == -INFINITY);
  CHECK(std::isnan(rounded(NAN)));
  CHECK(simt::pack_bf16(1.0f, -2.0f) == 0xc0003f80u);
}

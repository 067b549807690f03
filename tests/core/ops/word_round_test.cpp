// Weights rounded to bf16 directly in words.
#include <limits>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cpu/word_product.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::ops::cpu;
using ops::WeightLayout;

namespace {

// Columns [first, first + cols) of W [k, n], rounded one by one and then packed.
std::vector<std::uint16_t> rounded_then_packed(const PanelBlock& b, const WordLayout& to, std::size_t numbers) {
  std::vector<std::uint16_t> rounded, packed(numbers, 0x5A5A);
  for (std::int64_t i = 0; i < b.k; ++i) {
    for (std::int64_t j = b.first_col; j < b.first_col + b.cols; ++j) {
      rounded.push_back(bf16_from_float(b.weight[b.layout == WeightLayout::out_in ? j * b.k + i : i * b.n + j]));
    }
  }
  pack_words(rounded.data(), b.k, b.cols, to, packed.data());
  return packed;
}

}  // namespace

TEST_CASE("weights rounded directly in words are those rounded first and packed afterwards", "[ops]") {
  for (const std::int64_t k : {1, 2, 31, 32, 33, 100, 192}) {
    for (const std::int64_t n : {1, 15, 16, 17, 48, 49, 192, 230}) {
      std::vector<float> w = test::random_floats(k * n, static_cast<std::uint64_t>(k + n));
      w[0] = std::numeric_limits<float>::quiet_NaN();
      w.back() = -std::numeric_limits<float>::infinity();
      for (const WordLayout& to : {kAmxWords, kAvx512Words}) {
        for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
          for (const std::int64_t first : {std::int64_t{0}, n / 3}) {
            CAPTURE(k, n, to.blocks, layout == WeightLayout::out_in, first);
            const PanelBlock block{w.data(), layout, k, n, first, n - first};
            const std::int64_t groups = ceil_div(n - first, to.cols()), steps = ceil_div(k, 32);
            const auto numbers = static_cast<std::size_t>(groups * steps * to.cols() * 32);
            std::vector<std::uint16_t> packed(numbers, 0xA5A5);
            round_to_words(block, to, packed.data());
            CHECK(packed == rounded_then_packed(block, to, numbers));
          }
        }
      }
    }
  }
}

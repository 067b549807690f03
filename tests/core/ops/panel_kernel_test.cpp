#include "etc_core/ops/cpu/panel_kernel.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;
using ops::WeightLayout;
using ops::cpu::PanelKernel;

namespace {

// W [k, n] with the panel of columns [first, first + width), packed.
struct PackedPanel {
  std::int64_t k, width;
  std::vector<float> numbers;  // [k, width], row-major
  std::vector<float> packed;
};

PackedPanel pack(const PanelKernel& kernel, WeightLayout layout, std::int64_t k, std::int64_t width) {
  const std::int64_t first = 5, n = width + 9;
  const std::vector<float> w = random_floats(k * n, 1);
  PackedPanel panel{k, width, std::vector<float>(static_cast<std::size_t>(k * width)),
                    std::vector<float>(static_cast<std::size_t>(k * width))};
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t place = layout == WeightLayout::in_out ? i * n + first + j : (first + j) * k + i;
      panel.numbers[static_cast<std::size_t>(i * width + j)] = w[static_cast<std::size_t>(place)];
    }
  }
  kernel.pack({w.data(), layout, k, ops::cpu::row_stride(layout, k, n), first, width}, panel.packed.data());
  return panel;
}

// y [rows, width] after y (= or +=) x · rows [begin, k) of the panel. y lies between guard zones; rows of x and y have
// gaps between them.
std::vector<float> multiply(const PanelKernel& kernel, const PackedPanel& panel, const std::vector<float>& x,
                            std::int64_t rows, std::int64_t begin, bool add) {
  const std::int64_t x_stride = panel.k + 3, y_stride = panel.width + 2;
  Guarded y(rows * y_stride, 0.25f);
  kernel.multiply({.rows = rows,
                   .width = panel.width,
                   .depth = panel.k - begin,
                   .x = x.data() + begin,
                   .x_stride = x_stride,
                   .panel = panel.packed.data(),
                   .k = panel.k,
                   .begin = begin,
                   .y = y.data(),
                   .y_stride = y_stride,
                   .add = add});
  CHECK(y.guards_intact());
  std::vector<float> result;
  const std::vector<float> all = y.values();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < y_stride; ++j) {
      const float number = all[static_cast<std::size_t>(i * y_stride + j)];
      if (j < panel.width) {
        result.push_back(number);
      } else {
        CHECK((number == 0.25f || i == rows - 1));  // between two rows
      }
    }
  }
  return result;
}

void check_kernel(const PanelKernel& kernel, WeightLayout layout, std::int64_t k, std::int64_t width) {
  const PackedPanel panel = pack(kernel, layout, k, width);
  const std::int64_t x_stride = k + 3, most = kernel.tile_rows;
  const std::vector<float> x = random_floats(most * x_stride, 2);
  for (const bool add : {false, true}) {
    const std::int64_t begin = add ? k / 3 : 0;
    const std::vector<float> whole = multiply(kernel, panel, x, most, begin, add);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < most; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        double sum = add ? 0.25 : 0;
        for (std::int64_t t = begin; t < k; ++t) {
          sum += static_cast<double>(x[static_cast<std::size_t>(i * x_stride + t)]) *
                 static_cast<double>(panel.numbers[static_cast<std::size_t>(t * width + j)]);
        }
        expected.push_back(sum);
      }
    }
    // k roundings, each to 2^-24 of a partial sum; partial sums of k products below 1 are below sqrt(k) + 1 here.
    CHECK(near_all("y", whole, expected, 0x1p-24 * static_cast<double>(k) * std::sqrt(static_cast<double>(k) + 1)));
    // Rows alone, and any number of them, have the bits they have in a whole tile. linear_test.cpp checks this for the
    // library's shapes.
    if (&kernel != &ops::cpu::kStripPanels) continue;
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 17, 63}) {
      CAPTURE(rows, add);
      const std::int64_t first = most - rows;
      const std::vector<float> last(x.begin() + first * x_stride, x.end());
      const std::vector<float> part = multiply(kernel, panel, last, rows, begin, add);
      CHECK(same_bits(part, {whole.end() - rows * width, whole.end()}));
    }
  }
}

}  // namespace

TEST_CASE("a tile of a dense layer is the sum of products, and the bits of a row do not depend on other rows",
          "[core][ops][linear]") {
  for (const PanelKernel* kernel : {&ops::cpu::kStripPanels, &ops::cpu::panel_kernel()}) {
    for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      for (const auto& [k, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {1, 1}, {3, 23}, {64, 24}, {100, 7}, {128, 25}, {37, 186}, {256, 192}}) {
        CAPTURE(k, width, layout == WeightLayout::in_out, kernel == &ops::cpu::kStripPanels);
        check_kernel(*kernel, layout, k, width);
      }
    }
  }
}

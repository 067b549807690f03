// bf16 rows on the CPU (bf16_rows.h).
#include "tests/sparse/bf16_rows.h"

#include "sparse/register_cpu.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("attention on rows of bf16 has the bits of rows of fp32, rounded", "[sparse][processor]") {
  sparse::register_cpu_kernels();
  // Both divisions of work; one segment and several, whose halos are summed; key splits; non-temporal stores of rows.
  AttentionCase cases[] = {
      {"one token each", {1}, {1}, 5, 1, 16, 6, Labels::document},
      {"an example without anything", {9, 0, 5}, {4, 0, 3}, 3, 2, 16, 8, Labels::document},
      {"several segments", {9, 1200}, {30, 20}, 9, 2, 16, 12, Labels::document, 1.0f, 0.2f},
      {"radius beyond a segment", {1100}, {2}, 600, 1, 32, 8, Labels::document},
      {"scattered", {75, 33}, {17, 40}, 11, 3, 32, 12, Labels::scattered, 1.0f, 0.0f, 8},
      {"no labels", {40}, {5}, 7, 1, 128, 0, Labels::none, 1.0f, 0.1f},
      {"many rows", {2100}, {40}, 20, 4, 64, 12, Labels::document},
      {"D = 48", {130}, {23}, 20, 2, 48, 32, Labels::document},
      {"R of 255", {40}, {9}, 12, 1, 80, 255, Labels::scattered},
      {"biases", {40, 0, 3}, {5, 1, 0}, 7, 2, 32, 12, Labels::document},
      {"factors", {70}, {9}, 7, 2, 32, 12, Labels::document},
  };
  cases[9].parts.vectors = false;
  cases[10].parts.factors = true;
  for (AttentionCase& c : cases) {
    c.compute = ComputeType::bf16;
    for (const Side side : {Side::long_side, Side::global_side}) {
      CAPTURE(c.name, side == Side::long_side);
      CHECK(different_in_bf16_rows(c, side, Device::cpu) == "");
    }
  }
}

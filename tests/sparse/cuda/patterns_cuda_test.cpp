// Patterns on the emulated CUDA kernels, which know runs of keys and nothing of patterns.
#include "sparse/cuda/register_cuda.h"
#include "tests/sparse/attention_support.h"
#include "tests/sparse/pattern_cases.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("emulated kernels equal the reference in every pattern, of all heads or of each", "[sparse][cuda]") {
  sparse::register_cuda_kernels();
  const OneThread one_thread;
  std::size_t patterns = 0, own = 0;
  for (const PatternBatch& batch : pattern_batches()) {
    PatternCase c = batch.make();
    c.device = Device::cuda;
    c.dropout = 0.1f;
    if (c.tiles->types[0].queries() > 300) continue;
    ++patterns;
    own += c.tiles->types[0].heads > 1 ? 1 : 0;
    CHECK(compare_pattern(c, run_pattern(c)) == "");
    c.carries = true;
    c.layers = 2;
    CHECK(compare_pattern(c, run_pattern(c)) == "");
  }
  CHECK(patterns >= 9);
  CHECK(own >= 1);
}

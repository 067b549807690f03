// Embeddings on the emulator against the CPU's.
#include "etc_core/ops/embedding.h"

#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

TEST_CASE("emulated embeddings have the CPU's bits, forward and backward", "[ops][cuda]") {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
  const std::int64_t rows = 300;
  for (const std::int64_t cols : {1, 24, 200}) {
    const auto tokens = random_floats(50 * cols, 1), segments = random_floats(4 * cols, 2);
    const auto positions = random_floats(rows * cols, 3), base = random_floats(rows * cols, 4);
    const auto adder = random_floats(rows * cols, 5), de = random_floats(rows * cols, 9);
    const auto token_ids = random_ids(rows, 50, 6), position_ids = random_ids(rows, 300, 7);
    auto segment_ids = random_ids(rows, 3, 8);  // three ids of about a hundred tokens: several sums of 64
    segment_ids[3] = -1;
    segment_ids[69] = 4;
    for (int given = 0; given < 32; ++given) {
      const auto run = [&](Device device) {
        ops::EmbeddingForward a;
        Guarded e(rows * cols, 99.0f);
        a.rows = rows;
        a.cols = cols;
        if (given & 1) a.base = base.data();
        if (given & 2) a.tokens = {tokens.data(), 50, token_ids.data(), "token_ids"};
        if (given & 4) a.segments = {segments.data(), 4, segment_ids.data(), "segment_ids"};
        if (given & 8) a.positions = {positions.data(), 300, position_ids.data(), "position_ids"};
        if (given & 16) a.adder = adder.data();
        a.e = e.data();
        ops::embedding(device, a);
        CHECK(e.guards_intact());
        return e.values();
      };
      CHECK(same_bits(run(Device::cpu), run(Device::cuda)));
    }
    const auto gradient = [&](Device device) {
      Guarded of_tokens(50 * cols, 0.5f), of_segments(4 * cols, -1.0f);
      ops::embedding_backward(device, {rows, cols, 50, de.data(), token_ids.data(), of_tokens.data()});
      ops::embedding_backward(device, {rows, cols, 4, de.data(), segment_ids.data(), of_segments.data()});
      CHECK(of_tokens.guards_intact());
      CHECK(of_segments.guards_intact());
      auto all = of_tokens.values();
      const auto more = of_segments.values();
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    CHECK(same_bits(gradient(Device::cpu), gradient(Device::cuda)));
  }
}

#include "etc_core/ops/embedding.h"

#include "etc_core/ops/register.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

std::vector<std::int32_t> random_ids(std::int64_t count, std::int32_t limit, std::uint64_t seed) {
  std::vector<std::int32_t> ids;
  for (const float v : random_floats(count, seed))
    ids.push_back(static_cast<std::int32_t>((v + 1) / 2 * static_cast<float>(limit)));
  return ids;
}

}  // namespace

TEST_CASE("an embedding is the sum of the given rows, base and adder", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 70;
  for (const std::int64_t cols : {1, 24, 67}) {
    const auto tokens = random_floats(50 * cols, 1), segments = random_floats(4 * cols, 2);
    const auto positions = random_floats(70 * cols, 3), base = random_floats(rows * cols, 4);
    const auto adder = random_floats(rows * cols, 5);
    const auto token_ids = random_ids(rows, 50, 6), position_ids = random_ids(rows, 70, 7);
    auto segment_ids = random_ids(rows, 4, 8);
    segment_ids[3] = -1;  // outside: zeros
    segment_ids[69] = 4;
    for (int given = 0; given < 32; ++given) {
      CAPTURE(cols, given);
      ops::EmbeddingForward a;
      Guarded e(rows * cols, 99.0f);
      a.rows = rows;
      a.cols = cols;
      if (given & 1) a.base = base.data();
      if (given & 2) a.tokens = {tokens.data(), 50, token_ids.data(), "token_ids"};
      if (given & 4) a.segments = {segments.data(), 4, segment_ids.data(), "segment_ids"};
      if (given & 8) a.positions = {positions.data(), 70, position_ids.data(), "position_ids"};
      if (given & 16) a.adder = adder.data();
      a.e = e.data();
      ops::embedding(Device::cpu, a);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        const auto row = static_cast<std::size_t>(i / cols);
        const std::int64_t col = i % cols;
        const auto element = [&](const std::vector<float>& table, std::int32_t id) {
          return static_cast<double>(table[static_cast<std::size_t>(id * cols + col)]);
        };
        double sum = 0;
        if (given & 1) sum += static_cast<double>(base[static_cast<std::size_t>(i)]);
        if (given & 2) sum += element(tokens, token_ids[row]);
        if (given & 4 && segment_ids[row] >= 0 && segment_ids[row] < 4) sum += element(segments, segment_ids[row]);
        if (given & 8) sum += element(positions, position_ids[row]);
        if (given & 16) sum += static_cast<double>(adder[static_cast<std::size_t>(i)]);
        expected.push_back(sum);
      }
      REQUIRE(near_all("e", e.values(), expected, 6e-7));
      REQUIRE(e.guards_intact());
    }
    // Over its own base.
    auto e = base;
    ops::EmbeddingForward a;
    a.rows = rows;
    a.cols = cols;
    a.base = e.data();
    a.segments = {segments.data(), 4, segment_ids.data(), "segment_ids"};
    a.e = e.data();
    ops::embedding(Device::cpu, a);
    REQUIRE(e[0] == base[0] + segments[static_cast<std::size_t>(segment_ids[0] * cols)]);
  }
}

TEST_CASE("an id outside its table is named with example and position", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<float> table(10 * 2);
  std::vector<std::int32_t> ids = {0, 9, 3, 4, 5};
  const std::vector<std::int64_t> offsets = {0, 2, 2, 5};
  std::vector<float> e(10);
  ops::EmbeddingForward a;
  a.rows = 5;
  a.cols = 2;
  a.tokens = {table.data(), 10, ids.data(), "token_ids"};
  a.e = e.data();
  a.examples = 3;
  a.offsets = offsets.data();
  REQUIRE_NOTHROW(ops::embedding(Device::cpu, a));
  ids[3] = 10;
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, a),
                      "embedding: token_ids: example 2, position 1: expected an id from 0 to 9, got 10");
  ids[3] = -1;
  a.positions = a.tokens;
  a.positions.name = "position_ids";
  a.tokens.table = nullptr;
  REQUIRE_THROWS_WITH(ops::embedding(Device::cpu, a),
                      "embedding: position_ids: example 2, position 1: expected an id from 0 to 9, got -1");
}

TEST_CASE("a table's gradient sums its tokens in order, for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 500;
  // Twenty ids as of tokens, five as of segments: these sum their tokens in several blocks.
  for (const auto& [limit, cols] : {std::pair<std::int64_t, std::int64_t>{20, 1}, {20, 24}, {5, 300}}) {
    CAPTURE(limit, cols);
    const auto de = random_floats(rows * cols, 1);
    auto ids = random_ids(rows, static_cast<std::int32_t>(limit) - 3, 2);
    ids[5] = -1;
    ids[6] = static_cast<std::int32_t>(limit);
    const auto before = random_floats(limit * cols, 3);
    const auto run = [&, limit = limit, cols = cols] {
      Guarded dtable(before);
      ops::EmbeddingBackward a;
      a.rows = rows;
      a.cols = cols;
      a.limit = limit;
      a.de = de.data();
      a.ids = ids.data();
      a.dtable = dtable.data();
      ops::embedding_backward(Device::cpu, a);
      REQUIRE(dtable.guards_intact());
      return dtable.values();
    };
    std::vector<double> expected(before.begin(), before.end());
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const std::int64_t id = ids[static_cast<std::size_t>(i / cols)];
      if (id < 0 || id >= limit) continue;
      expected[static_cast<std::size_t>(id * cols + i % cols)] += static_cast<double>(de[static_cast<std::size_t>(i)]);
    }
    REQUIRE(near_all("dtable", run(), expected, 1e-5));
    REQUIRE(same_bits_for_any_thread_count(run));
  }
}

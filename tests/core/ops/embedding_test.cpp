#include "etc_core/ops/embedding.h"

#include "etc_core/ops/register.h"
#include "tests/reference/embedding.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

// All terms of an embedding sum for `rows` tokens; ids repeat, and two segment ids are out of range.
struct Terms {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> base, adder, tables[3];
  std::vector<std::int32_t> ids[3];
};

constexpr std::int64_t kLimits[] = {50, 4, 70};  // tokens, segments, positions

Terms terms(std::int64_t rows, std::int64_t cols) {
  Terms made{rows, cols, mixed_floats(rows * cols, 4), mixed_floats(rows * cols, 5), {}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    made.tables[i] = mixed_floats(kLimits[i] * cols, 1 + i);
    made.ids[i] = random_ids(rows, static_cast<std::int32_t>(kLimits[i]), 6 + i);
  }
  made.ids[1].front() = -1;  // outside: zeros
  if (rows > 3) made.ids[1][3] = 4;
  return made;
}

// Bits of `given`: base, the three tables, adder.
ops::EmbeddingForward arguments(const Terms& of, int given, float* e) {
  ops::EmbeddingForward a{.rows = of.rows, .cols = of.cols};
  if (given & 1) a.base = of.base.data();
  if (given & 2) a.tokens = {of.tables[0].data(), kLimits[0], of.ids[0].data(), "token_ids"};
  if (given & 4) a.segments = {of.tables[1].data(), kLimits[1], of.ids[1].data(), "segment_ids"};
  if (given & 8) a.positions = {of.tables[2].data(), kLimits[2], of.ids[2].data(), "position_ids"};
  if (given & 16) a.adder = of.adder.data();
  a.e = e;
  return a;
}

// In double, of the numbers (convert: to_double) or of their magnitudes.
Reals reference(const Terms& of, int given, Reals (*convert)(const std::vector<float>&)) {
  Reals e(of.base.size());
  if (given & 1) e = convert(of.base);
  for (std::size_t i = 0; i < 3; ++i) {
    if (given & 2 << i) reference_lookup({convert(of.tables[i]), kLimits[i], of.ids[i]}, of.cols, e);
  }
  const Reals adder = convert(of.adder);
  for (std::size_t i = 0; given & 16 && i < e.size(); ++i) e[i] += adder[i];
  return e;
}

// Tolerances for `factor` roundings, each relative to the sum of the magnitudes.
Reals tolerances(Reals mass, double factor) {
  for (double& value : mass) value *= factor * 0x1p-24;
  return mass;
}

}  // namespace

TEST_CASE("an embedding is the sum of the given rows, base and adder", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t rows : {1, 2, 70}) {
    for (const std::int64_t cols : {1, 2, 6, 10, 24, 67}) {
      const Terms of = terms(rows, cols);
      for (int given = 0; given < 32; ++given) {
        CAPTURE(rows, cols, given);
        Guarded e(rows * cols, 99.0f);
        ops::embedding(Device::cpu, arguments(of, given, e.data()));
        // Five terms: four roundings.
        REQUIRE(near_each("e", e.values(), reference(of, given, to_double),
                          tolerances(reference(of, given, magnitudes), 4)));
        REQUIRE(e.guards_intact());
      }
      // In place over base and over adder.
      for (const int given : {1, 16}) {
        CAPTURE(rows, cols, given);
        Guarded e(given == 1 ? of.base : of.adder);
        ops::EmbeddingForward a = arguments(of, 2 | 4 | given, e.data());
        (given == 1 ? a.base : a.adder) = e.data();
        ops::embedding(Device::cpu, a);
        REQUIRE(near_each("e", e.values(), reference(of, 2 | 4 | given, to_double),
                          tolerances(reference(of, 2 | 4 | given, magnitudes), 2)));
        REQUIRE(e.guards_intact());
      }
    }
  }
  const Terms of = terms(1000, 24);
  REQUIRE(same_bits_for_any_thread_count([&] {
    std::vector<float> e(of.base.size());
    ops::embedding(Device::cpu, arguments(of, 31, e.data()));
    return e;
  }));
}

TEST_CASE("an id outside its table is named with example and position", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<float> table(10 * 2);
  std::vector<std::int32_t> ids = {0, 9, 3, 4, 5};
  const std::vector<std::int64_t> offsets = {0, 2, 2, 5};
  std::vector<float> e(10);
  ops::EmbeddingForward a{.rows = 5,
                          .cols = 2,
                          .tokens = {table.data(), 10, ids.data(), "token_ids"},
                          .e = e.data(),
                          .examples = 3,
                          .offsets = offsets.data()};
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

namespace {

// dtable + the gradient.
std::vector<float> gradient(const std::vector<float>& before, std::int64_t cols, const std::vector<std::int32_t>& ids,
                            const std::vector<float>& de) {
  Guarded dtable(before);
  ops::EmbeddingBackward a{.rows = std::ssize(ids),
                           .cols = cols,
                           .limit = std::ssize(before) / cols,
                           .de = de.data(),
                           .ids = ids.data(),
                           .dtable = dtable.data()};
  ops::embedding_backward(Device::cpu, a);
  REQUIRE(dtable.guards_intact());
  return dtable.values();
}

}  // namespace

TEST_CASE("a table's gradient sums its tokens in order, for any thread count", "[core][ops]") {
  ops::register_cpu_ops();
  struct Case {
    std::int64_t rows, limit, cols;
  };
  // Twenty ids as for tokens, five as for segments, which sum their tokens in several blocks. With four ids and with
  // one, nearly all tokens have the same id.
  for (const auto& [rows, limit, cols] : {Case{0, 20, 6},
                                          {1, 4, 1},
                                          {2, 20, 2},
                                          {6, 4, 10},
                                          {10, 300, 6},
                                          {500, 20, 1},
                                          {500, 20, 24},
                                          {500, 5, 300},
                                          {500, 4, 10}}) {
    CAPTURE(rows, limit, cols);
    const auto de = mixed_floats(rows * cols, 1), before = mixed_floats(limit * cols, 3);
    auto ids = random_ids(rows, static_cast<std::int32_t>(limit) - 3, 2);
    if (rows > 6) {
      ids[5] = -1;
      ids[6] = static_cast<std::int32_t>(limit);
    }
    const Reals expected = reference_lookup_gradient(to_double(before), ids, cols, to_double(de));
    const Reals mass = reference_lookup_gradient(magnitudes(before), ids, cols, magnitudes(de));
    // A sum of at most `rows` gradients and the initial value, in any order: one rounding for each.
    const Reals tolerance = tolerances(mass, static_cast<double>(rows));
    const auto run = [&, cols = cols] { return gradient(before, cols, ids, de); };
    REQUIRE(near_each("dtable", run(), expected, tolerance));
    REQUIRE(same_bits_for_any_thread_count(run));
  }
}

TEST_CASE("central differences confirm the gradient of a table", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::int32_t> ids = {2, 0, 2, 2, -1, 4, 0, 5, 2};  // repeated, absent (1, 3) and outside
  for (const std::int64_t cols : {1, 2, 6, 10}) {
    CAPTURE(cols);
    const auto table = random_floats(5 * cols, 1), de = random_floats(std::ssize(ids) * cols, 2);
    const auto loss = [&, cols = cols](const Reals& values) {
      Reals e(de.size());
      reference_lookup({values, 5, ids}, cols, e);
      return inner_product(e, to_double(de));
    };
    // The loss is linear, so a step of 1 is exact. At most four gradients below 1 are summed: three roundings.
    const Reals slopes = central_differences(loss, to_double(table), 1);
    const auto dtable = gradient(std::vector<float>(table.size()), cols, ids, de);
    REQUIRE(near_all("dtable", dtable, slopes, 3 * 4 * 0x1p-24));
  }
}

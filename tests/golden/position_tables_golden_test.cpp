// Sinusoids, NEZHA's tables and the buckets of T5 against dense_reference.h5, groups `sinusoid` and `t5`.
#include <cmath>
#include <cstdio>

#include "etc_core/base/error.h"
#include "etc_core/nn/position_tables.h"
#include "sparse/labels/distance_maps.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

namespace etc::test {
namespace {

// The largest difference, in units of the tolerance (2e-5 + 2e-5 of the value).
double difference(const std::vector<double>& expected, const std::vector<float>& table) {
  REQUIRE(expected.size() == table.size());
  double worst = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double allowed = 2e-5 + 2e-5 * std::abs(expected[i]);
    worst = std::max(worst, std::abs(expected[i] - static_cast<double>(table[i])) / allowed);
  }
  return worst;
}

TEST_CASE("sinusoids of every layout and the tables of NEZHA are those of the file", "[golden]") {
  for_each_file_with("sinusoid", [](const GoldenFile& file) {
    const auto compare = [&](const std::string& name, std::vector<float> table) {
      CAPTURE(name);
      const auto expected = file.read<double>("sinusoid/" + name).values;
      CHECK(difference(expected, table) <= 1);
      table.back() += 1e-3f;  // a changed number is noticed
      CHECK(difference(expected, table) > 1);
    };
    const auto positions = file.read<std::int64_t>("sinusoid/positions").values;
    for (const std::int64_t columns : {7, 8}) {
      const std::string end = "_D" + std::to_string(columns);
      compare("interleaved" + end, sinusoids(SinusoidLayout::interleaved, positions, columns));
      compare("halves_t2t" + end, sinusoids(SinusoidLayout::halves_t2t, positions, columns));
    }
    compare("halves_xl_signed_D8",
            sinusoids(SinusoidLayout::halves_xl, file.read<std::int64_t>("sinusoid/signed_positions").values, 8));
    const std::int64_t k = file.read<std::int64_t>("sinusoid/nezha_k").values.at(0);
    compare("nezha_index_table_D6", nezha_table(NezhaRows::index, k, 6));
    compare("nezha_signed_table_D6", nezha_table(NezhaRows::signed_distance, k, 6));
  });
}

TEST_CASE("the buckets of T5 are those of the file", "[golden]") {
  for_each_file_with("t5", [](const GoldenFile& file) {
    const auto distances = file.read<std::int64_t>("t5/distances").values;
    for (std::size_t i = 0; i < distances.size(); ++i) {
      REQUIRE(distances[i] == distances[0] + static_cast<std::int64_t>(i));
    }
    std::size_t compared = 0;
    for (const std::string& name : file.data_sets("t5")) {
      char direction[20];
      long long buckets, farthest;
      if (std::sscanf(name.c_str(), "buckets_%lld_%lld_%19s", &buckets, &farthest, direction) != 3) continue;
      const sparse::T5Buckets settings{buckets, farthest, std::string(direction) == "bidirectional"};
      const auto expected = file.read<std::int64_t>("t5/" + name).values;
      std::vector<std::int64_t> got;
      for (const std::int64_t distance : distances) got.push_back(sparse::t5_bucket(settings, distance));
      CAPTURE(name);
      CHECK(got == expected);
      ++compared;
    }
    CHECK(compared == 8);
  });
}

TEST_CASE("tables of positions are refused without columns or with a negative clip", "[golden]") {
  CHECK_THROWS_WITH(sinusoids(SinusoidLayout::halves_xl, {1}, 0),
                    Catch::Contains("columns: expected at least 1, got 0"));
  CHECK_THROWS_WITH(nezha_table(NezhaRows::index, -1, 4), Catch::Contains("clip: expected at least 0, got -1"));
  // With a single pair the published formula of the angle would divide by D/2 - 1 = 0.
  CHECK(difference({std::sin(3.0), std::cos(3.0)}, sinusoids(SinusoidLayout::halves_t2t, {3}, 2)) <= 1);
}

}  // namespace
}  // namespace etc::test

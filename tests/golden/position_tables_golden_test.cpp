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
#include "tests/support/worst.h"

namespace etc::test {
namespace {

// In units of the tolerance.
double difference(const std::vector<double>& expected, const std::vector<float>& table) {
  return worst_difference(expected, table, 2e-5, 2e-5);
}

// The rows of a table of the group `sinusoid` by its name, "interleaved_D8"; nothing for another name.
std::vector<float> table_named(const GoldenFile& file, const std::string& name) {
  const std::size_t end = name.rfind("_D");
  if (end == std::string::npos) return {};
  const std::int64_t columns = std::stoll(name.substr(end + 2));
  const std::string layout = name.substr(0, end);
  const auto positions = [&](const char* of) { return file.read<std::int64_t>(std::string("sinusoid/") + of).values; };
  if (layout == "interleaved") return sinusoids(SinusoidLayout::interleaved, positions("positions"), columns);
  if (layout == "halves_t2t") return sinusoids(SinusoidLayout::halves_t2t, positions("positions"), columns);
  if (layout == "halves_xl_signed") {
    return sinusoids(SinusoidLayout::halves_xl, positions("signed_positions"), columns);
  }
  const std::int64_t k = positions("nezha_k").at(0);
  if (layout == "nezha_index_table") return nezha_table(NezhaRows::index, k, columns);
  if (layout == "nezha_signed_table") return nezha_table(NezhaRows::signed_distance, k, columns);
  return {};
}

TEST_CASE("sinusoids of every layout and the tables of NEZHA are those of the file", "[golden]") {
  for_each_file_with("sinusoid", [](const GoldenFile& file) {
    int compared = 0;
    for (const std::string& name : file.data_sets("sinusoid")) {
      if (name.ends_with("positions") || name == "nezha_k") continue;  // inputs
      CAPTURE(name);
      auto expected = file.read<double>("sinusoid/" + name).values;
      const std::vector<float> table = table_named(file, name);
      CHECK(difference(expected, table) <= 1);
      for (const double wrong : {expected.back() + 1e-3, std::nan("")}) {  // a changed number is noticed
        expected.back() = wrong;
        CHECK(difference(expected, table) > 1);
      }
      ++compared;
    }
    CHECK(compared > 0);
    file.require_all_read("sinusoid");
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
      if (name == "distances") continue;
      CAPTURE(name);
      char direction[20];
      long long buckets, farthest;
      REQUIRE(std::sscanf(name.c_str(), "buckets_%lld_%lld_%19s", &buckets, &farthest, direction) == 3);
      const bool both = std::string(direction) == "bidirectional";
      REQUIRE((both || std::string(direction) == "causal"));
      const sparse::T5Buckets settings{buckets, farthest, both};
      const auto expected = file.read<std::int64_t>("t5/" + name).values;
      std::vector<std::int64_t> got;
      for (const std::int64_t distance : distances) got.push_back(sparse::t5_bucket(settings, distance));
      CHECK(got == expected);
      ++compared;
    }
    CHECK(compared > 0);
    file.require_all_read("t5");
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

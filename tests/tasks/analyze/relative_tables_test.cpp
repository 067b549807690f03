// The first layer's relative tables of every position method, and pictures of numbers in rows and columns.
#include "tasks/analyze/relative_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "etc_core/nn/position_tables.h"
#include "sparse/labels/distance_maps.h"
#include "tasks/analyze/heat_map.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"

namespace etc::analyze {
namespace {

using Catch::Matchers::Contains;
using Method = PositionConfig::Method;

struct Watched {
  std::vector<RelativeTableValues> tables;
  std::map<std::string, std::vector<float>> parameters;

  // The parameter whose name ends with `end`; encoders prepend their own name.
  const std::vector<float>& parameter(const std::string& end) const {
    const auto found = std::ranges::find_if(parameters, [&](const auto& named) { return named.first.ends_with(end); });
    REQUIRE(found != parameters.end());
    return found->second;
  }
};

Watched tables_with(Method method, PositionConfig::Sharing sharing = PositionConfig::Sharing::layer_head) {
  DenseConfig config = test::small_dense();
  config.max_absolute_position_embeddings = 0;
  config.relative_positions = method;
  config.relative_clip = 3;
  config.relative_sharing = sharing;
  config.relative_buckets = 8;
  config.relative_max_distance = 16;
  test::SmallDense model(config);
  Watched found;
  for (const auto& parameter : model.parameters.all()) {
    const float* const values = parameter->value.data();
    found.parameters[parameter->name] = {values, values + parameter->size()};
  }
  ForwardOptions options;
  options.attention_watch = [&](const WatchedAttention& watched) {
    if (watched.layer == 0) found.tables = relative_tables_of(watched, 0);
  };
  Tape tape(Recording::off);
  model.encoder.forward(tape, test::sequences({9}), options);
  return found;
}

std::vector<std::string> names_of(const Watched& watched) {
  std::vector<std::string> names;
  for (const RelativeTableValues& table : watched.tables) names.push_back(table.name);
  return names;
}

using Names = std::vector<std::string>;
const std::string kFirst = "layer_0/attention/self/relative_table";

TEST_CASE("the first layer's table is found with every position method, a row for each distance", "[analyze]") {
  CHECK(names_of(tables_with(Method::none)) == Names{});
  CHECK(names_of(tables_with(Method::shaw_values)) == Names{"self_vectors", "self_value_vectors"});
  CHECK(names_of(tables_with(Method::huang1)) == Names{"self_factors"});
  CHECK(names_of(tables_with(Method::huang2)) == Names{"self_factors"});
  CHECK(names_of(tables_with(Method::huang3)) == Names{"self_products"});
  CHECK(names_of(tables_with(Method::transformer_xl)) == Names{"self_vectors", "self_biases"});
  CHECK(names_of(tables_with(Method::etc)) == Names{"self_vectors", "self_biases"});
  for (const Method method : {Method::shaw, Method::huang4}) {
    const Watched watched = tables_with(method);
    REQUIRE(names_of(watched) == Names{"self_vectors"});
    const RelativeTableValues& table = watched.tables.front();
    CHECK(table.values == watched.parameter(kFirst));
    CHECK(table.first == -3);
    CHECK(table.row_of == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
    CHECK((table.rows == 7 && table.heads == 2 && table.size == 12));
  }
  const Watched shared = tables_with(Method::shaw, PositionConfig::Sharing::layer);
  CHECK((shared.tables.front().heads == 1 && shared.tables.front().values == shared.parameter(kFirst)));
}

TEST_CASE("rows that no parameter holds are shown as attention reads them", "[analyze]") {
  // NEZHA: one table of sinusoids for keys and values.
  const Watched nezha = tables_with(Method::nezha_signed);
  REQUIRE(names_of(nezha) == Names{"self_vectors"});
  CHECK(nezha.tables.front().values == nezha_table(NezhaRows::signed_distance, 3, 12));
  CHECK(nezha.tables.front().heads == 1);
  // Transformer-XL's rows are indexed by query - key, so they run in the opposite order.
  const RelativeTableValues xl = tables_with(Method::transformer_xl).tables.front();
  for (std::int64_t d = -2; d <= 2; ++d) CHECK(xl.row(d) == xl.row(0) - d);
  // T5: several distances share a bucket; scores are not scaled, so the biases are shown as stored.
  const Watched t5 = tables_with(Method::t5);
  REQUIRE(names_of(t5) == Names{"self_biases"});
  const RelativeTableValues& biases = t5.tables.front();
  const sparse::T5Buckets settings{8, 16, true};
  for (std::int64_t d = -9; d <= 9; ++d) {
    CAPTURE(d);
    if (biases.has(d)) CHECK(biases.row(d) == sparse::t5_bucket(settings, d));
  }
  CHECK(biases.has(0));
  CHECK(biases.values == t5.parameter("relative_table"));
  CHECK_FALSE(biases.vectors);
  // ETC divides the biases together with the scores by the square root of the head size.
  const Watched etc = tables_with(Method::etc);
  const auto own = etc.parameter("layer_0/attention/self/relative_bias_table");
  for (std::size_t i = 0; i < own.size(); ++i) {
    CHECK(etc.tables.back().values.at(i) == Approx(own[i] / std::sqrt(12.0f)));
  }
}

RelativeTableValues hand_made() {
  RelativeTableValues table{"self_vectors", true, 25, 1, 2, {}, -12, {}, {}};
  for (std::int64_t row = 0; row < 25; ++row) {
    table.row_of.push_back(row);
    const float size = row == 12 ? 6 : (std::abs(row - 12) > 10 ? static_cast<float>(1 + row % 2) : 100.0f);
    table.values.insert(table.values.end(), {0.6f * size, -0.8f * size});
  }
  return table;
}

TEST_CASE("distance 0 is compared with the median of distances beyond ten", "[analyze]") {
  RelativeTableValues table = hand_made();  // sizes beyond distance 10: 1, 2, 2, 1
  CHECK(table.size_of(12, 0) == Approx(6));
  CHECK(table.nearness() == Approx(4));
  table.row_of.resize(23);
  CHECK(table.nearness() == Approx(4));  // sizes left: 1, 2
  table.first = -2;
  table.row_of = {0, 1, 2};
  CHECK(std::isnan(table.nearness()));
}

TEST_CASE("a heat map has a cell for each number, blue below 0 and red above, and says its largest", "[analyze]") {
  HeatMap map;
  map.title = "A & B";
  map.unit = "value";
  map.columns = 3;
  map.rows = 2;
  map.first_column = -1;
  map.value = [](std::int64_t row, std::int64_t column) {
    if (row == 1 && column == 2) return std::numeric_limits<double>::quiet_NaN();
    return row == 0 ? 2.0 * static_cast<double>(column - 1) : 0.0;
  };
  const std::string picture = drawn(map);
  CHECK_THAT(picture, Contains("A &amp; B") && Contains("#2166ac") && Contains("#b2182b") && Contains("#c8c8c8"));
  CHECK_THAT(picture, Contains(">2</text>") && Contains(">-2</text>") && Contains(">-1</text>"));
  map.signs = false;
  CHECK_THAT(drawn(map), !Contains("#b2182b") && Contains("#08306b"));
  map.value = [](std::int64_t, std::int64_t) { return 0.0; };
  CHECK_THAT(drawn(map), !Contains("nan"));
}

}  // namespace
}  // namespace etc::analyze

// The first layer's relative tables of every position method, and pictures of numbers in rows and columns.
#include "tasks/analyze/relative_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "etc_core/nn/attention_analysis.h"
#include "etc_core/nn/position_tables.h"
#include "sparse/labels/distance_maps.h"
#include "tasks/analyze/first_tokens.h"
#include "tasks/analyze/heat_map.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"

namespace etc::analyze {
namespace {

using Catch::Matchers::Contains;
using Method = PositionConfig::Method;

struct Watched {
  std::vector<RelativeTableValues> tables;
  std::vector<TableNorms> norms;
  std::map<std::string, std::vector<float>> parameters;

  // The parameter whose name ends with `end`; encoders prepend their own name.
  const std::vector<float>& parameter(const std::string& end) const {
    const auto found = std::ranges::find_if(parameters, [&](const auto& named) { return named.first.ends_with(end); });
    REQUIRE(found != parameters.end());
    return found->second;
  }
};

// Two heads of 12 components, or as many heads as components.
Watched tables_with(Method method, PositionConfig::Sharing sharing = PositionConfig::Sharing::layer_head,
                    std::optional<std::int64_t> heads_and_components = {}) {
  DenseConfig config = test::small_dense();
  if (heads_and_components) {
    config.num_attention_heads = *heads_and_components;
    config.att_size_per_head = heads_and_components;
  }
  config.max_absolute_position_embeddings = 0;
  config.relative_positions = method;
  config.relative_clip = 3;
  config.relative_sharing = sharing;
  config.relative_buckets = 8;
  config.relative_max_distance = 16;
  test::SmallDense model(config);
  Watched found;
  for (const auto& parameter : model.parameters.all()) {
    float* const values = parameter->value.data();
    if (parameter->name.ends_with("relative_bias_table")) {  // starts with zeros
      for (std::int64_t i = 0; i < parameter->size(); ++i) values[i] = 0.5f - 0.25f * static_cast<float>(i % 5);
    }
    found.parameters[parameter->name] = {values, values + parameter->size()};
  }
  ForwardOptions options;
  options.attention_watch = [&](const WatchedAttention& watched) {
    if (watched.layer == 0) found.tables = relative_tables_of(watched, 0);
  };
  Tape tape(Recording::off);
  model.encoder.forward(tape, test::sequences({9}), options);
  found.norms = table_norms_of(config, model.parameters);
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

// What the norms of a table's rows must be: of vectors, or the scalars with a factor.
std::vector<double> norms_of(const std::vector<float>& values, std::size_t size) {
  std::vector<double> norms;
  for (std::size_t at = 0; at < values.size(); at += size) {
    double squares = 0;
    for (std::size_t c = at; c < at + size; ++c) squares += std::pow(static_cast<double>(values[c]), 2);
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}
std::vector<double> times(const std::vector<float>& values, double factor) {
  std::vector<double> products;
  for (const float value : values) products.push_back(static_cast<double>(value) * factor);
  return products;
}

// The parameter's rows as they are written to tables/.
void check_norms(const Watched& watched, const std::string& end, std::int64_t heads,
                 const std::vector<double>& values) {
  CAPTURE(end);
  const auto found = std::ranges::find_if(watched.norms, [&](const auto& table) { return table.name.ends_with(end); });
  REQUIRE(found != watched.norms.end());
  CHECK(found->heads == heads);
  REQUIRE(found->values.size() == values.size());
  CHECK(found->rows * found->heads == std::ssize(values));
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(found->values[i] == Approx(values[i]).margin(1e-12));
}

TEST_CASE("only ETC's relative biases are divided by the square root of the head size, in every layer", "[analyze]") {
  const auto table = [](const Watched& watched) { return watched.parameter("relative_table"); };
  for (const Method method : {Method::t5, Method::huang1, Method::huang2}) {
    const Watched watched = tables_with(method);
    check_norms(watched, "relative_table", 2, times(table(watched), 1));
  }
  CHECK(tables_with(Method::t5).norms.size() == 1);  // one for all layers
  const Watched etc = tables_with(Method::etc);
  CHECK(etc.norms.size() == 2 * 3);
  check_norms(etc, kFirst, 2, norms_of(etc.parameter(kFirst), 12));
  const std::string biases = "layer_0/attention/self/relative_bias_table";
  check_norms(etc, biases, 2, times(etc.parameter(biases), 1 / std::sqrt(12.0)));
  const Watched values = tables_with(Method::shaw_values);
  const std::string second = "layer_2/attention/self/relative_value_table";
  check_norms(values, second, 2, norms_of(values.parameter(second), 12));
}

TEST_CASE("relative tables that all heads share have one column, also where heads have as many components",
          "[analyze]") {
  const auto layer = PositionConfig::Sharing::layer;
  for (const Method method : {Method::shaw, Method::huang3, Method::huang4}) {
    const Watched watched = tables_with(method, layer, 4);
    check_norms(watched, kFirst, 1, norms_of(watched.parameter(kFirst), 4));
  }
  for (const Method method : {Method::huang1, Method::huang2}) {
    const Watched watched = tables_with(method, layer);
    check_norms(watched, kFirst, 1, times(watched.parameter(kFirst), 1));
  }
  const Watched etc = tables_with(Method::etc, layer);
  const std::string biases = "layer_1/attention/self/relative_bias_table";
  check_norms(etc, biases, 1, times(etc.parameter(biases), 1 / std::sqrt(12.0)));
  // Transformer-XL's v, one vector for each head, and its projection are no rows by distance.
  CHECK(tables_with(Method::transformer_xl, layer, 4).norms.empty());
}

TEST_CASE("probabilities between the first tokens are those of the first layer, however many keys there are",
          "[analyze]") {
  DenseConfig config = test::small_dense();
  config.max_absolute_position_embeddings = 0;
  test::SmallDense model(config);
  for (const std::int64_t length : {7, 620}) {
    CAPTURE(length);
    const EncoderInput input = test::sequences({length});
    Tape tape(Recording::off);
    const FirstTokens first = first_tokens_of(model.encoder, tape, input);
    const std::int64_t n = std::min(length, kFirstTokens);
    CHECK(first.op == "self");
    REQUIRE(first.tokens == n);
    // The same from all keys of all queries.
    AnalysisSettings settings;
    settings.top = length;
    std::vector<double> expected(static_cast<std::size_t>(n * n));
    AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
      for (std::int64_t at = 0; at < std::ssize(of.top) && of.layer == 0; ++at) {
        const std::int64_t query = at / length % of.queries;
        const sparse::TopKey& key = of.top[static_cast<std::size_t>(at)];
        if (query >= n || key.key >= n) continue;
        expected[static_cast<std::size_t>(query * n + key.key)] +=
            static_cast<double>(key.probability) / static_cast<double>(of.heads);
      }
    });
    ForwardOptions options;
    options.attention_watch = std::ref(analysis);
    model.encoder.forward(tape, input, options);
    REQUIRE(first.attention.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(first.attention[i] == Approx(expected[i]).epsilon(1e-9));
    CHECK(*std::min_element(expected.begin(), expected.end()) > 0);
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

// Quantities over many tokens: distributions, results of batches, query groups, pictures.
#include "tasks/analyze/distribution.h"

#include <cmath>

#include "data/dataset_info.h"
#include "sparse/etc_attention.h"
#include "sparse/self_attention.h"
#include "tasks/analyze/model_analysis.h"
#include "tasks/analyze/violins.h"
#include "tasks/analyze/visible_keys.h"
#include "tasks/nq/prepare_config.h"
#include "tests/reference/analysis.h"
#include "tests/support/catch.h"

namespace etc::analyze {
namespace {

using Catch::Matchers::Contains;

// Numbers between 0 and 4, most of them small.
reference::Row values_of(int count) {
  reference::Row values;
  for (int i = 0; i < count; ++i) values.push_back(4 * std::pow(std::fmod(i * 0.6180339887, 1.0), 3));
  return values;
}

TEST_CASE("quantiles of bins are off by a bin at most, those of kept values not at all", "[analyze]") {
  const reference::Row values = values_of(2000);
  Distribution bins(4, false), exact(4, true);
  double sum = 0, squares = 0;
  for (const double value : values) {
    bins.add(value);
    exact.add(value);
    sum += value;
  }
  const double mean = sum / 2000;
  for (const double value : values) squares += (value - mean) * (value - mean);
  CHECK(bins.mean() == Approx(mean).epsilon(1e-12));
  CHECK(bins.variance() == Approx(squares / 2000).epsilon(1e-12));
  for (const double q : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
    CAPTURE(q);
    CHECK(std::abs(bins.quantile(q) - reference::quantile(values, q)) <= 4.0 / kBins);
    CHECK(std::abs(exact.quantile(q) - reference::quantile(values, q)) <= 1e-6);
  }
}

TEST_CASE("quantiles of a few values far apart lie between their bins", "[analyze]") {
  const reference::Row values = {0.1, 0.2, 1.9, 3.9};
  Distribution bins(4, false);
  for (const double value : values) bins.add(value);
  for (const double q : {0.1, 0.25, 0.4, 0.5, 0.75, 0.95}) {
    CAPTURE(q);
    CHECK(std::abs(bins.quantile(q) - reference::quantile(values, q)) <= 4.0 / kBins);
  }
}

TEST_CASE("the median of an even count is the mean of the middle values; equal values have no width", "[analyze]") {
  Distribution even(1, true), equal(1, false);
  for (const double value : {0.1, 0.2, 0.6, 0.9}) even.add(value);
  for (int i = 0; i < 10; ++i) equal.add(0.3);
  CHECK(even.quantile(0.5) == Approx(0.4));
  CHECK(equal.quantile(0.05) == 0.3);
  CHECK(equal.quantile(0.95) == 0.3);
  CHECK(equal.variance() == 0);
  CHECK(density_of(equal).size() == 1);
}

TEST_CASE("what is not a number is counted apart, and many values leave a sample", "[analyze]") {
  Distribution cell(1, true);
  CHECK(std::isnan(cell.quantile(0.5)));
  CHECK(density_of(cell).empty());
  cell.add(std::nan(""));
  CHECK(cell.count() == 0);
  CHECK(cell.skipped() == 1);
  // The values ascend: a sample of the first ones alone would have a median of 0.25.
  constexpr int kValues = 200000;
  static_assert(kValues > Distribution::kKept);
  for (int i = 0; i < kValues; ++i) cell.add(i / static_cast<double>(kValues));
  CHECK(cell.quantile(0.5) == Approx(0.5).margin(0.01));
}

TEST_CASE("a density has its peaks where the values are, within their range", "[analyze]") {
  Distribution cell(1, false);
  for (int i = 0; i < 1000; ++i) cell.add(i % 4 == 0 ? 0.8 + 0.0001 * i / 4 : 0.2 + 0.0001 * i / 4);
  const plot::Points density = density_of(cell);
  CHECK(density.front().first == Approx(cell.least()));
  CHECK(density.back().first == Approx(cell.largest()));
  const auto at = [&](double value) {
    double nearest = 0, away = 1;
    for (const auto& [x, y] : density) {
      if (std::abs(x - value) < away) {
        away = std::abs(x - value);
        nearest = y;
      }
    }
    return nearest;
  };
  CHECK(at(0.21) > at(0.81));
  CHECK(at(0.81) > at(0.5));
}

// One layer of one head with these entropies; nan stands for probabilities that are not numbers.
LayerStatistics layer_of(const std::vector<double>& entropies, const std::vector<double>& visible) {
  LayerStatistics of;
  of.op = &sparse::kSelfAttention;
  of.heads = 1;
  of.queries = std::ssize(entropies);
  of.of_queries.assign(entropies.size() * sparse::kQueryStatistics, std::nan(""));
  of.distance_mass.resize(3);
  for (std::size_t i = 0; i < entropies.size(); ++i) {
    of.of_queries[i * sparse::kQueryStatistics] = visible[i];
    of.of_queries[i * sparse::kQueryStatistics + 1] = entropies[i];
  }
  return of;
}

TEST_CASE("queries without visible keys are skipped and counted, nan is an error with layer, head, example",
          "[analyze]") {
  const std::vector<std::int64_t> offsets{0, 2, 4}, numbers{17, 23};
  const std::vector<std::uint8_t> bits{1, 1, 1, 1};
  const BatchQueries from{offsets, bits, numbers};
  const LayerStatistics good = layer_of({0.5, std::nan(""), 0.25, 1}, {4, 0, 4, 4});
  OperatorResults results(good, 1, {.reach = 1, .most_keys = 4});
  results.add_queries(from);
  results.add(good, from);
  CHECK(results.queries == 4);
  CHECK(results.unseen == 1);
  CHECK(results.cell(Quantity::entropy, 0, 0).count() == 3);
  CHECK(results.cell(Quantity::entropy_normalised, 0, 0).mean() == Approx(1.75 / 3 / std::log(4.0)));
  // Distances -1, 0, 1 of two sequences of two tokens.
  CHECK(results.distance_queries == std::vector<std::int64_t>{2, 4, 2});
  CHECK_THROWS_WITH(results.add(layer_of({0.5, 1, std::nan(""), 1}, {4, 4, 4, 4}), from),
                    Contains("self attention of layer 0, head 0, example 23: expected probabilities, got nan"));
}

TEST_CASE("one-hot shares, roots of divergences and mean distances are those of the queries", "[analyze]") {
  const std::vector<std::int64_t> offsets{0, 2, 4}, numbers{17, 23};
  const std::vector<std::uint8_t> bits{1, 1, 1, 1};
  LayerStatistics layer = layer_of({0.5, 0.5, 0.25, 1}, {4, 4, 4, 4});
  const auto set = [&](sparse::QueryStatistic what, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      layer.of_queries[i * sparse::kQueryStatistics + static_cast<std::size_t>(what)] = values[i];
    }
  };
  set(sparse::QueryStatistic::largest, {0.991, 0.99, 0.5, 1});  // one-hot: above 0.99
  set(sparse::QueryStatistic::jsd, {0.25, 0.04, 0, 1});
  set(sparse::QueryStatistic::distance_0, {1, 2, 3, 6});
  OperatorResults results(layer, 1, {.reach = 1, .most_keys = 4, .jsd_distance = true});
  results.add(layer, {offsets, bits, numbers});
  CHECK(results.cell(Quantity::one_hot, 0, 0).mean() == Approx(0.5));
  CHECK(results.cell(Quantity::jsd_distance, 0, 0).mean() == Approx((0.5 + 0.2 + 0 + 1) / 4));
  OperatorResults without(layer, 1, {.reach = 1, .most_keys = 4});
  without.add(layer, {offsets, bits, numbers});
  CHECK((without.has(Quantity::jsd) && !without.has(Quantity::jsd_distance)));
  CHECK(results.cell(Quantity::distance_0, 0, 0).mean() == Approx(3));
  CHECK(results.cell(Quantity::distance_0, 0, 0).largest() == Approx(6));
}

TEST_CASE("query groups go by types and ids of the task's data, unknown ones are refused with the list", "[analyze]") {
  const auto groups = chosen_groups({"cls", "question", "candidate", "sentence_globals", "paragraph_globals"});
  EncoderInput input;
  input.long_offsets = {0, 3, 5};
  input.global_offsets = {0, 2, 4};
  input.token_ids = {101, 7, 8, 101, 9};
  input.segment_ids = {3, 3, 4, 3, 1};
  input.global_token_ids = {101, 5, 101, 6};
  input.global_segment_ids = {6, 0, 5, 7};
  const TaskTokens wikihop{"wikihop"};
  CHECK(groups_of_long(wikihop, groups, input) == std::vector<std::uint8_t>{2, 2, 4, 2, 0});
  CHECK(groups_of_global(wikihop, groups, input) == std::vector<std::uint8_t>{4, 8, 2, 16});
  // Groups by token ids; the first token is CLS.
  const TaskTokens hotpotqa{"hotpotqa", 4, 5, 6};
  input.global_segment_ids.assign(4, 0);
  CHECK(groups_of_long(hotpotqa, groups, input) == std::vector<std::uint8_t>{1, 2, 0, 1, 0});
  CHECK(groups_of_global(hotpotqa, groups, input) == std::vector<std::uint8_t>{1, 8, 1, 16});
  CHECK(chosen_groups({}).size() == query_group_names().size());
  CHECK_THROWS_WITH(chosen_groups({"all", "titles"}),
                    Contains("candidate, sentence_globals") && Contains("got titles"));
}

TEST_CASE("the entropy within a type is normalised by the keys of the type that the query sees", "[analyze]") {
  const std::vector<std::int64_t> offsets{0, 4}, numbers{0};
  const std::vector<std::uint8_t> bits{1, 1, 1, 1};
  LayerStatistics layer = layer_of({0.5, 0.5, 0.5, 0.5}, {5, 6, 4, 3});
  layer.op = &sparse::kLongAttention;
  const auto set = [&](sparse::QueryStatistic what, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      layer.of_queries[i * sparse::kQueryStatistics + static_cast<std::size_t>(what)] = values[i];
    }
  };
  set(sparse::QueryStatistic::entropy_0, {std::log(3.0), 0.5, 0, std::log(2.0) + 1e-7});
  set(sparse::QueryStatistic::entropy_1, {0.25, std::nan(""), 0.5, 0});
  const std::vector<std::int32_t> visible_1{2, 2, 3, 1};  // and 3, 4, 1, 2 of the other type
  OperatorResults results(layer, 1, {.reach = 1, .most_keys = 6});
  results.add(layer, {offsets, bits, numbers, visible_1});
  const Distribution& first = results.cell(Quantity::entropy_normalised_0, 0, 0);
  CHECK(first.mean() == Approx((1 + 0.5 / std::log(4.0) + 1) / 3));
  CHECK((first.largest() == 1 && first.skipped() == 1));  // no choice with one key
  // A type without mass has no entropy.
  const Distribution& second = results.cell(Quantity::entropy_normalised_1, 0, 0);
  CHECK(second.mean() == Approx((0.25 / std::log(2.0) + 0.5 / std::log(3.0)) / 2));
  CHECK(second.skipped() == 2);
  CHECK(results.name_of(Quantity::entropy_normalised_1) == "entropy_normalised_l2g");
}

TEST_CASE("the keys that each query sees are counted by type", "[analyze]") {
  constexpr std::uint8_t kNo = sparse::kMasked;
  const std::vector<std::int64_t> longs{0, 18, 20}, globals{0, 2, 3};
  std::vector<std::uint8_t> l2g(18 * 2 + 2, 0);
  l2g[1] = l2g[4] = l2g[5] = l2g[35] = l2g[36] = kNo;
  sparse::LabelTensors labels;
  labels.examples = 2;
  labels.long_offsets = longs.data();
  labels.global_offsets = globals.data();
  labels.radius = 1;
  labels.l2g = l2g.data();
  const sparse::AttentionTiles of_long = sparse::build_long_tiles(labels),
                               of_global = sparse::build_global_tiles(labels);
  std::vector<std::int32_t> window(20, 3), seen(18, 2);
  window[0] = window[17] = window[18] = window[19] = 2;
  seen[0] = seen[17] = 1;
  seen[2] = 0;
  seen.insert(seen.end(), {0, 1});
  CHECK(visible_keys(of_long.types[0]) == window);
  CHECK(visible_keys(of_long.types[1]) == seen);
  CHECK(visible_keys(of_global.types[0]) == std::vector<std::int32_t>{2, 2, 1});
  CHECK(visible_keys(of_global.types[1]) == std::vector<std::int32_t>{18, 18, 2});
}

// The bits of the groups that are not `all`: 1 cls, 2 question, 4 candidate, 8 sentence, 16 paragraph.
using Bits = std::vector<std::uint8_t>;
struct GroupBits {
  Bits of_long, of_global;
};
GroupBits bits_of(const TaskTokens& task, const EncoderInput& input) {
  const auto groups = chosen_groups({"cls", "question", "candidate", "sentence_globals", "paragraph_globals"});
  return {groups_of_long(task, groups, input), groups_of_global(task, groups, input)};
}

TEST_CASE("query groups of nq go by the ids that its data name, with candidates and with fixed blocks", "[analyze]") {
  data::DatasetInfo info;
  info.task = "nq";
  nq::SpecialIds special;
  special.cls = 101;
  special.sep = 102;
  info.preprocess_config = {{"special_ids", nq::json_of(special)}};
  const TaskTokens nq = TaskTokens::of(info);
  // CLS, a question of two pieces, SEP, two candidates, SEP; a longer question without text.
  EncoderInput input;
  input.long_offsets = {0, 8, 13};
  input.global_offsets = {0, 7, 11};
  input.token_ids = {101, 7, 8, 102, 20, 21, 22, 102, 101, 7, 8, 9, 102};
  const std::int32_t q = special.question, s = special.sentence;
  input.global_token_ids = {101, q, q, q, s, s, 0, 101, q, q, q};
  const GroupBits bits = bits_of(nq, input);
  CHECK(bits.of_long == Bits{1, 2, 2, 2, 0, 0, 0, 0, 1, 2, 2, 2, 2});
  CHECK(bits.of_global == Bits{1, 2, 2, 2, 8, 8, 0, 1, 2, 2, 2});
  input.global_offsets = {0, 2, 4};
  input.global_token_ids = {s, s, s, s};
  CHECK(bits_of(nq, input).of_global == Bits{8, 8, 8, 8});
}

TEST_CASE("global tokens that copy long ones are no sentences: squad's question, the CLS of glue", "[analyze]") {
  EncoderInput input;
  input.long_offsets = {0, 6, 10};
  input.global_offsets = {0, 5, 8};
  input.token_ids = {101, 7, 102, 9, 9, 102, 101, 102, 9, 102};
  input.segment_ids = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1};
  input.global_token_ids = {101, 7, 102, 1, 1, 101, 102, 1};
  const GroupBits squad = bits_of(TaskTokens{"squad"}, input);
  CHECK(squad.of_long == Bits{1, 2, 2, 0, 0, 0, 1, 2, 0, 0});
  CHECK(squad.of_global == Bits{1, 2, 2, 8, 8, 1, 2, 8});
  CHECK(bits_of(TaskTokens{"glue"}, input).of_global == Bits{1, 8, 8, 8, 8, 1, 8, 8});
  // The text of pre-training begins with CLS, but its first global token is a sentence; pages of openkp have no CLS.
  const GroupBits pretrain = bits_of(TaskTokens{"pretrain"}, input);
  CHECK(pretrain.of_long == Bits{1, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  CHECK(pretrain.of_global == Bits(8, 8));
  const GroupBits openkp = bits_of(TaskTokens{"openkp"}, input);
  CHECK(openkp.of_long == Bits(10, 0));
  CHECK(openkp.of_global == Bits(8, 8));
}

TEST_CASE("examples are drawn by the seed without repeats, all of them where there are no more", "[analyze]") {
  const auto drawn = drawn_examples(100, 10, 3);
  CHECK(drawn.size() == 10);
  CHECK(std::adjacent_find(drawn.begin(), drawn.end(), std::greater_equal<>()) == drawn.end());
  CHECK(drawn == drawn_examples(100, 10, 3));
  CHECK(drawn != drawn_examples(100, 10, 4));
  CHECK(drawn_examples(3, 8192, 1) == std::vector<std::int64_t>{0, 1, 2});
}

}  // namespace
}  // namespace etc::analyze

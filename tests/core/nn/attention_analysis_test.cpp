// The statistics of every layer's attention against the formulas, and their invariances (analysis 10).
#include "etc_core/nn/attention_analysis.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/random_input.h"
#include "sparse/etc_attention.h"
#include "tests/reference/analysis.h"
#include "tests/support/catch.h"
#include "tests/support/small_config.h"

namespace etc {
namespace {

using reference::Row;
using sparse::QueryStatistic;

constexpr std::int64_t kLayers = 3, kHeads = 2;

EtcConfig config_of(bool running_mean) {
  EtcConfig config = test::small_config({.layers = kLayers, .heads = kHeads, .radius = 20});
  config.use_residual_attention = true;
  config.use_running_mean = running_mean;
  return config;
}

struct Run {
  std::vector<LayerStatistics> layers;
  std::vector<ExternalScores> carried;  // after each layer
  Tensor states;
};

// change: applied to the parameters before the pass.
struct Model {
  ParameterSet parameters;
  EtcEncoder encoder;

  explicit Model(const EtcConfig& config) : encoder(config, parameters) {
    register_cpu_backend();
    parameters.initialize(7);
    // Scale weights so that scores are a few units; with initial weights the attention is nearly uniform.
    for (const auto& parameter : parameters.all()) {
      if (parameter->name.find("query") == std::string::npos && parameter->name.find("_key") == std::string::npos)
        continue;
      for (std::int64_t i = 0; i < parameter->value.size(); ++i) parameter->value.data()[i] *= 20;
    }
  }

  Run run(const EncoderInput& input, AnalysisSettings settings = {}) {
    Run run;
    AttentionAnalysis analysis(std::move(settings), [&](const LayerStatistics& of) { run.layers.push_back(of); });
    ForwardOptions options;
    options.attention_watch = std::ref(analysis);
    options.watch = [&](std::int64_t layer, const Tensor&, const Tensor&, const ExternalScores& scores) {
      if (layer >= 0) run.carried.push_back(scores);
    };
    Tape tape(Recording::off);
    run.states = encoder.forward(tape, input, options).long_states.value();
    return run;
  }
};

// softmax of the carried scores of one query over both key sets, times `factor`; the first `split` are those of set 0.
Row probabilities(const ExternalScores& scores, bool global, std::int64_t head, std::int64_t query, double factor,
                  const EncoderInput& input, std::size_t& split) {
  const std::int64_t L = input.long_tokens(), G = input.global_tokens(), W = 41;
  Row logits;
  const auto take = [&](const char* type, std::int64_t queries, std::int64_t columns, bool window) {
    const float* const row = scores.of(type).data() + (head * queries + query) * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t key = query + c - 20;
      if (!window || (key >= 0 && key < L)) logits.push_back(factor * static_cast<double>(row[c]));
    }
  };
  take(global ? "g2g" : "l2l", global ? G : L, global ? G : W, !global);
  split = logits.size();
  take(global ? "g2l" : "l2g", global ? G : L, global ? L : G, false);
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x - most);
  for (double& x : logits) x /= sum;
  return logits;
}

TEST_CASE("entropies, masses and divergences are those of the carried scores", "[nn]") {
  for (const bool running_mean : {false, true}) {
    CAPTURE(running_mean);
    const EtcConfig config = config_of(running_mean);
    Model model(config);
    const EncoderInput input = random_input(config, 150, 10);
    const Run run = model.run(input);
    REQUIRE(run.layers.size() == 2 * kLayers);
    double worst = 0;
    const auto compare = [&](double expected, double got) {
      const double off = std::abs(expected - got) / (2e-5 + 2e-5 * std::abs(expected));
      worst = std::max(worst, std::isnan(off) ? HUGE_VAL : off);
    };
    for (const LayerStatistics& of : run.layers) {
      const bool global = of.op == &sparse::kGlobalAttention;
      const auto layer = static_cast<std::size_t>(of.layer);
      const auto factor = [&](std::size_t l) { return running_mean ? 1.0 / static_cast<double>(l + 1) : 1.0; };
      for (std::int64_t row = 0; row < of.heads * of.queries; ++row) {
        const std::int64_t head = row / of.queries, query = row % of.queries;
        const auto at = [&](QueryStatistic which) { return of.at(head, query, which); };
        std::size_t split = 0;
        const Row p = probabilities(run.carried[layer], global, head, query, factor(layer), input, split);
        const Row first = reference::part(p, 0, split), second = reference::part(p, split, p.size());
        CHECK(at(QueryStatistic::visible) == static_cast<double>(p.size()));
        compare(reference::entropy(p), at(QueryStatistic::entropy));
        compare(reference::mass(first), at(QueryStatistic::mass_0));
        compare(reference::entropy(reference::renormalised(second)), at(QueryStatistic::entropy_1));
        compare(*std::max_element(p.begin(), p.end()), at(QueryStatistic::largest));
        if (of.layer == 0) continue;
        const Row q = probabilities(run.carried[layer - 1], global, head, query, factor(layer - 1), input, split);
        compare(reference::divergence(p, q) / std::log(2.0), at(QueryStatistic::jsd));
        const Row q_first = reference::renormalised(reference::part(q, 0, split));
        compare(reference::divergence(reference::renormalised(first), q_first) / std::log(2.0),
                at(QueryStatistic::jsd_0));
        // The decomposition of analysis 5, and masses that sum to 1.
        const double a = at(QueryStatistic::mass_0), b = at(QueryStatistic::mass_1);
        CHECK(std::abs(a + b - 1) < 1e-12);
        const double parts = a * at(QueryStatistic::entropy_0) + b * at(QueryStatistic::entropy_1);
        CHECK(std::abs(parts - a * std::log(a) - b * std::log(b) - at(QueryStatistic::entropy)) < 1e-12);
      }
    }
    CHECK(worst <= 1);
  }
}

// Compares bit by bit, including nan.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST_CASE("statistics have the same bits for any thread count and beside other examples", "[nn][threads]") {
  const EtcConfig config = config_of(false);
  Model model(config);
  AnalysisSettings settings;
  settings.reach = 20;
  settings.top = 3;
  settings.all_heads = true;
  const EncoderInput alone = random_input(config, 700, 16);
  const Run expected = model.run(alone, settings);
  const int threads = thread_count();
  set_thread_count(3);
  const Run other = model.run(alone, settings);
  set_thread_count(threads);
  for (std::size_t n = 0; n < expected.layers.size(); ++n) {
    const LayerStatistics &a = expected.layers[n], &b = other.layers[n];
    CHECK(same(a.of_queries, b.of_queries));
    CHECK(same(a.distance_mass, b.distance_mass));
    CHECK(same(a.label_mass[0], b.label_mass[0]));
    CHECK(same(a.jsd_of_heads, b.jsd_of_heads));
    CHECK(std::memcmp(a.top.data(), b.top.data(), a.top.size() * sizeof(sparse::TopKey)) == 0);
  }
  // The first example of the batch equals the single one, since equal arguments give equal inputs.
  const EncoderInput both = random_batch(config, {700, 90}, 16);
  const Run beside = model.run(both), single = model.run(random_batch(config, {700}, 16));
  for (std::size_t n = 0; n < single.layers.size(); ++n) {
    const LayerStatistics &a = single.layers[n], &b = beside.layers[n];
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const auto first = [&](const LayerStatistics& of) {
        return of.of_queries.data() + head * of.queries * sparse::kQueryStatistics;
      };
      const auto bytes = static_cast<std::size_t>(a.queries * sparse::kQueryStatistics) * sizeof(double);
      CHECK(std::memcmp(first(a), first(b), bytes) == 0);
    }
  }
}

TEST_CASE("sums by label and distance are the masses, and the first of the top keys is the largest probability",
          "[nn]") {
  const EtcConfig config = config_of(false);
  Model model(config);
  AnalysisSettings settings;
  settings.reach = 20;
  settings.top = 4;
  settings.groups_of = [](const sparse::AttentionOperator*) { return QueryGroups{2, {}}; };
  for (const LayerStatistics& of : model.run(random_input(config, 150, 10), settings).layers) {
    const std::int64_t width = 2 * settings.reach + 1;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const auto sum = [&](const std::vector<double>& values, std::int64_t columns, std::int64_t group) {
        double total = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          total += values[static_cast<std::size_t>((head * 2 + group) * columns + c)];
        }
        return total;
      };
      double masses[2] = {0, 0};
      for (std::int64_t query = 0; query < of.queries; ++query) {
        masses[0] += of.at(head, query, QueryStatistic::mass_0);
        masses[1] += of.at(head, query, QueryStatistic::mass_1);
        const sparse::TopKey* const top = &of.top[static_cast<std::size_t>((head * of.queries + query) * settings.top)];
        CHECK(static_cast<double>(top[0].probability) == Approx(of.at(head, query, QueryStatistic::largest)));
        for (int k = 1; k < 4; ++k) CHECK(top[k].probability <= top[k - 1].probability);
      }
      for (const std::size_t t : {0, 1}) CHECK(sum(of.label_mass[t], of.labels, 0) == Approx(masses[t]).epsilon(1e-5));
      if (of.op == &sparse::kLongAttention) CHECK(sum(of.distance_mass, width, 0) == Approx(masses[0]).epsilon(1e-5));
      // The second group has no members.
      CHECK(sum(of.distance_mass, width, 1) == 0);
      CHECK(sum(of.label_mass[0], of.labels, 1) == 0);
    }
  }
}

// Whether `next` may follow `key` in a list: its probability is smaller, or equal and the key a later one.
bool in_order(const sparse::TopKey& key, const sparse::TopKey& next) {
  if (next.key < 0) return true;
  if (key.probability != next.probability) return key.probability > next.probability;
  return std::pair(key.set, key.key) < std::pair(next.set, next.key);
}

TEST_CASE("the top keys of a query are the first of all its keys by probability, also where many are equal", "[nn]") {
  const EtcConfig config = config_of(false);
  for (const bool equal : {false, true}) {
    Model model(config);
    for (const auto& parameter : model.parameters.all()) {
      if (equal && parameter->name.find("query") != std::string::npos) parameter->value.zero();
    }
    const EncoderInput input = random_input(config, 150, 10);
    const auto layers = [&](std::int64_t top) {
      AnalysisSettings settings;
      settings.top = top;
      return model.run(input, settings).layers;
    };
    constexpr std::int64_t kAll = 170;  // more than there are keys
    const auto all = layers(kAll);
    for (const std::int64_t kept : {1, 5, 16, 100}) {
      CAPTURE(equal, kept);
      const auto shorter = layers(kept);
      for (std::size_t n = 0; n < all.size(); ++n) {
        bool ordered = true, complete = true, first = true;
        for (std::int64_t row = 0; row < all[n].heads * all[n].queries; ++row) {
          const sparse::TopKey* const list = &all[n].top[static_cast<std::size_t>(row * kAll)];
          const auto seen =
              static_cast<std::int64_t>(all[n].at(row / all[n].queries, row % all[n].queries, QueryStatistic::visible));
          complete &= list[seen - 1].key >= 0 && list[seen].key < 0;
          for (std::int64_t k = 1; k < seen; ++k) ordered &= in_order(list[k - 1], list[k]);
          const sparse::TopKey* const own = &shorter[n].top[static_cast<std::size_t>(row * kept)];
          first &= std::memcmp(own, list, static_cast<std::size_t>(kept) * sizeof(sparse::TopKey)) == 0;
        }
        CHECK((ordered && complete && first));
      }
    }
  }
}

TEST_CASE("layers without scores of their own attend as the layer before with the sum, more evenly with the mean",
          "[nn]") {
  for (const bool running_mean : {false, true}) {
    CAPTURE(running_mean);
    const EtcConfig config = config_of(running_mean);
    Model model(config);
    for (const auto& parameter : model.parameters.all()) {
      const bool later = parameter->name.find("fused_att_layer_0") == std::string::npos;
      if (later && parameter->name.find("query") != std::string::npos) parameter->value.zero();
    }
    const Run run = model.run(random_input(config, 100, 10));
    for (std::size_t n = 2; n < run.layers.size(); ++n) {
      const LayerStatistics &of = run.layers[n], &before = run.layers[n - 2];
      for (std::int64_t row = 0; row < of.heads * of.queries; ++row) {
        const std::int64_t head = row / of.queries, query = row % of.queries;
        const double entropy = of.at(head, query, QueryStatistic::entropy);
        const double earlier = before.at(head, query, QueryStatistic::entropy);
        if (running_mean) {
          CHECK(entropy > earlier);
        } else {
          CHECK(of.at(head, query, QueryStatistic::jsd) == 0);
          CHECK(entropy == earlier);
        }
      }
    }
  }
}

TEST_CASE("watching changes no state, and scores that were not kept are refused", "[nn]") {
  const EtcConfig config = config_of(false);
  Model model(config);
  const EncoderInput input = random_input(config, 100, 10);
  Tape tape(Recording::off);
  const Tensor plain = model.encoder.forward(tape, input, {}).long_states.value().clone();
  const Tensor watched = model.run(input).states;
  CHECK(std::memcmp(plain.data(), watched.data(), static_cast<std::size_t>(plain.size()) * sizeof(float)) == 0);
  sparse::AttentionStatistics args;
  CHECK_THROWS_WITH(sparse::attention_statistics(Device::cpu, args),
                    Catch::Matchers::Contains("tiles: expected those of the batch"));
}

}  // namespace
}  // namespace etc

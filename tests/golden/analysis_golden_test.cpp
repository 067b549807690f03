// Entropy, divergence and masses against dense_reference.h5, groups `analysis` and `analysis_etc`: the formulas in double
// precision, and the pass over the tiles from queries and keys whose products are the logarithms of the file's
// probabilities.
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>

#include "etc_core/nn/attention_analysis.h"
#include "etc_core/nn/backends.h"
#include "sparse/self_attention.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/analysis.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"

namespace etc::test {
namespace {

using reference::Row;
using sparse::QueryStatistic;
using Results = std::map<std::string, Row>;  // by the names of the file, below the group

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- The file's probabilities. ----

struct Probabilities {
  std::int64_t layers = 1, heads = 0, queries = 0, keys = 0;
  Row values;  // [layers, heads, queries, keys]

  Probabilities(const GoldenFile& file, const std::string& data_set) {
    const auto array = file.read<double>(data_set);
    const auto& shape = array.shape;
    if (shape.size() == 4) layers = shape[0];
    heads = shape[shape.size() - 3];
    queries = shape[shape.size() - 2];
    keys = shape.back();
    values = array.values;
  }
  Row row(std::int64_t layer, std::int64_t head, std::int64_t query) const {
    const auto at = static_cast<std::ptrdiff_t>(((layer * heads + head) * queries + query) * keys);
    return {values.begin() + at, values.begin() + at + static_cast<std::ptrdiff_t>(keys)};
  }
  template <typename Take>
  void for_each_row(Take&& take) const {
    for (std::int64_t n = 0; n < layers * heads * queries; ++n) {
      take(n / queries / heads, n / queries % heads, n % queries);
    }
  }
};

// ---- By the formulas. ----

// The summaries of entropies and divergences per token, in the order of the file.
void add_summaries(const Probabilities& p, std::int64_t real, Results& found) {
  const auto cells = [&](const std::string& name, const std::function<void(const Row&)>& take) {
    const Row& all = found[name];
    for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(p.queries)) {
      take(reference::part(all, at, at + static_cast<std::size_t>(real)));
    }
  };
  cells("entropy_nats",
        [&](const Row& cell) { found["median_entropy_nats"].push_back(reference::quantile(cell, 0.5)); });
  cells("jsd_bits", [&](const Row& cell) { found["median_jsd_bits"].push_back(reference::quantile(cell, 0.5)); });
  for (const double q : {0.05, 0.25, 0.5, 0.75, 0.95}) {
    cells("entropy_nats",
          [&](const Row& cell) { found["quantiles_entropy_nats"].push_back(reference::quantile(cell, q)); });
  }
  const Row& medians = found["median_entropy_nats"];
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(p.heads));
    std::iota(order.begin(), order.end(), 0);
    const auto median = [&](std::int64_t head) { return medians[static_cast<std::size_t>(layer * p.heads + head)]; };
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return median(a) < median(b); });
    for (const std::int64_t head : order) found["head_order_by_median_entropy"].push_back(static_cast<double>(head));
  }
}

std::int64_t real_queries(const GoldenFile& file) {
  return file.read<std::int64_t>("analysis/real_queries").values.front();
}

Results dense_by_formula(const GoldenFile& file) {
  const Probabilities p(file, "analysis/probs");
  Results found;
  // The mask: keys that any query attends to.
  Row& seen = found["mask"];
  seen.assign(static_cast<std::size_t>(p.queries * p.keys), 0);
  p.for_each_row([&](std::int64_t layer, std::int64_t head, std::int64_t query) {
    const Row own = p.row(layer, head, query);
    for (std::int64_t j = 0; j < p.keys; ++j) {
      if (own[static_cast<std::size_t>(j)] > 0) seen[static_cast<std::size_t>(query * p.keys + j)] = 1;
    }
    found["entropy_nats"].push_back(reference::entropy(own));
    found["entropy_bits"].push_back(reference::entropy(own) / std::log(2.0));
    if (layer == 0) return;
    const double nats = reference::divergence(own, p.row(layer - 1, head, query));
    found["jsd_nats"].push_back(nats);
    found["jsd_bits"].push_back(nats / std::log(2.0));
  });
  add_summaries(p, real_queries(file), found);
  return found;
}

struct EtcSizes {
  std::int64_t radius, length, globals;
  std::vector<std::int64_t> sentences;

  explicit EtcSizes(const GoldenFile& file)
      : radius(file.int_attribute("analysis_etc", "radius")),
        length(file.int_attribute("analysis_etc", "long")),
        globals(file.int_attribute("analysis_etc", "globals")),
        sentences(file.read<std::int64_t>("analysis_etc/sentence_ids").values) {
    REQUIRE(file.string_attribute("analysis_etc", "columns_long") == "window then globals");
    REQUIRE(file.string_attribute("analysis_etc", "columns_global") == "globals then long");
  }
  std::int64_t window() const { return 2 * radius + 1; }
};

Results etc_by_formula(const GoldenFile& file) {
  const EtcSizes sizes(file);
  const Probabilities of_long(file, "analysis_etc/long_probs"), of_global(file, "analysis_etc/global_probs");
  Results found;
  const auto take = [&](const Row& p, std::size_t split, const std::array<std::string, 3>& names) {
    const Row first = reference::part(p, 0, split), second = reference::part(p, split, p.size());
    found["entropy_" + names[0]].push_back(reference::entropy(p));
    for (const auto& [name, part] : {std::pair(names[1], first), std::pair(names[2], second)}) {
      found["mass_" + name].push_back(reference::mass(part));
      found["entropy_" + name + "_renormalised"].push_back(reference::entropy(reference::renormalised(part)));
    }
  };
  Row offsets(static_cast<std::size_t>(of_long.heads * sizes.window()));
  of_long.for_each_row([&](std::int64_t, std::int64_t head, std::int64_t query) {
    const Row p = of_long.row(0, head, query);
    take(p, static_cast<std::size_t>(sizes.window()), {"long", "l2l", "l2g"});
    for (std::int64_t w = 0; w < sizes.window(); ++w) {
      offsets[static_cast<std::size_t>(head * sizes.window() + w)] +=
          p[static_cast<std::size_t>(w)] / static_cast<double>(sizes.length);
    }
    const double member =
        p[static_cast<std::size_t>(sizes.window() + sizes.sentences[static_cast<std::size_t>(query)])];
    found["mass_l2g_member"].push_back(member);
    found["mass_l2g_other"].push_back(found["mass_l2g"].back() - member);
  });
  found["mass_by_window_offset"] = offsets;
  of_global.for_each_row([&](std::int64_t, std::int64_t head, std::int64_t query) {
    take(of_global.row(0, head, query), static_cast<std::size_t>(sizes.globals), {"global", "g2g", "g2l"});
  });
  return found;
}

// ---- By the pass over the tiles. ----

// Logits as products: keys are unit vectors, queries have the logits as components; 1 for all terms' scale.
struct Operands {
  Tensor q, k;  // [rows, N·D]
  std::int64_t heads, size;

  Operands(std::int64_t of_heads, std::int64_t queries, std::int64_t keys, std::int64_t components)
      : q(Tensor::zeros({queries, of_heads * components}, Purpose::activations)),
        k(Tensor::zeros({keys, of_heads * components}, Purpose::activations)),
        heads(of_heads),
        size(components) {}
  float& query(std::int64_t row, std::int64_t head, std::int64_t c) {
    return q.data()[(row * heads + head) * size + c];
  }
  void unit_key(std::int64_t row, std::int64_t c) {
    for (std::int64_t head = 0; head < heads; ++head) k.data()[(row * heads + head) * size + c] = 1;
  }
};

float logarithm(double p) {
  return p > 0 ? static_cast<float>(std::log(p)) : 0.0f;
}

Columns columns(const Tensor& tensor) {
  return {Var(tensor), 0};
}

// Runs `layers` layers of an operator; inputs(layer) gives what each reads.
std::vector<LayerStatistics> analysed(const std::shared_ptr<AttentionBatch>& batch, std::int64_t layers,
                                      const AnalysisSettings& settings,
                                      const std::function<AttentionInputs(std::int64_t)>& inputs) {
  register_cpu_backend();
  std::vector<LayerStatistics> all;
  AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) { all.push_back(of); });
  batch->watch = std::ref(analysis);
  Tape tape(Recording::off);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    attention(tape, *batch->operators[0].tiles.op, batch, layer, Pass::forward, inputs(layer));
  }
  batch->watch = nullptr;
  return all;
}

// The tiles of the file's mask: [2n-1] labels by distance of each query.
sparse::AttentionTiles masked_tiles(const GoldenFile& file, std::int64_t n) {
  const auto mask = file.read_mask("analysis/mask");
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(n * (2 * n - 1)), sparse::kMasked);
  for (std::int64_t i = 0; i < n * n; ++i) {
    const std::int64_t query = i / n, place = query * (2 * n - 1) + i % n - query + n - 1;
    if (mask[static_cast<std::size_t>(i)] != 0) labels[static_cast<std::size_t>(place)] = 0;
  }
  const std::vector<std::int64_t> offsets{0, n};
  return sparse::build_self_tiles({1, offsets.data(), sparse::SequenceLabels::kFull, 0, labels.data()});
}

// carried: a layer's own scores are its logits minus those of the layer before (running sum).
Results dense_by_tiles(const GoldenFile& file, bool carried) {
  const Probabilities p(file, "analysis/probs");
  auto batch = std::make_shared<AttentionBatch>();
  batch->operators.push_back({masked_tiles(file, p.keys), false});
  batch->heads = p.heads;
  batch->head_size = p.keys;
  batch->scale = 1;
  sparse::ScoreOptions scores{p.layers, p.heads, {true}};
  scores.keep_last = true;
  if (carried) batch->scores.emplace(scores, batch->scored_operators());
  const auto layers = analysed(batch, p.layers, {}, [&](std::int64_t layer) -> AttentionInputs {
    Operands operands(p.heads, p.queries, p.keys, p.keys);
    for (std::int64_t j = 0; j < p.keys; ++j) operands.unit_key(j, j);
    p.for_each_row([&](std::int64_t of, std::int64_t head, std::int64_t query) {
      const Row own = p.row(of, head, query);
      for (std::int64_t j = 0; j < p.keys; ++j) {
        const float logit = logarithm(own[static_cast<std::size_t>(j)]);
        if (of == layer) operands.query(query, head, j) += logit;
        if (carried && of == layer - 1) operands.query(query, head, j) -= logit;
      }
    });
    const Columns q = columns(operands.q), k = columns(operands.k),
                  none = columns(Tensor::empty({0, q.var.value().cols()}, Purpose::activations));
    return {q, {{{k, k}, {none, none}}}, {}};
  });
  Results found;
  for (const LayerStatistics& of : layers) {
    for (std::int64_t row = 0; row < of.heads * of.queries; ++row) {
      const auto at = [&](QueryStatistic which) { return of.at(row / of.queries, row % of.queries, which); };
      found["entropy_nats"].push_back(at(QueryStatistic::entropy));
      found["entropy_bits"].push_back(at(QueryStatistic::entropy) / std::log(2.0));
      if (!of.compared) continue;
      found["jsd_bits"].push_back(at(QueryStatistic::jsd));
      found["jsd_nats"].push_back(at(QueryStatistic::jsd) * std::log(2.0));
    }
  }
  add_summaries(p, real_queries(file), found);
  return found;
}

// Labels: 0 where a long token belongs to a global one, 1 elsewhere.
struct EtcLabels {
  std::vector<std::uint8_t> l2l, l2g, g2l;

  EtcLabels(const EtcSizes& sizes, const Probabilities& of_global) {
    l2l.assign(static_cast<std::size_t>(sizes.length * sizes.window()), 1);
    for (std::int64_t i = 0; i < sizes.length * sizes.globals; ++i) {
      const bool member = sizes.sentences[static_cast<std::size_t>(i / sizes.globals)] == i % sizes.globals;
      l2g.push_back(member ? 0 : 1);
    }
    for (std::int64_t g = 0; g < sizes.globals; ++g) {
      const Row p = of_global.row(0, 0, g);
      for (std::int64_t i = 0; i < sizes.length; ++i) {
        const bool seen = p[static_cast<std::size_t>(sizes.globals + i)] > 0;
        g2l.push_back(seen ? 1 : sparse::kMasked);
      }
    }
  }
};

// Runs one of the two operators on the file's probabilities of its queries. column(query, c): the key of column c, where
// long keys are numbered after the global ones; -1: none.
LayerStatistics etc_layer(const GoldenFile& file, bool global, const EtcSizes& sizes) {
  const Probabilities of_global(file, "analysis_etc/global_probs");
  const Probabilities p(file, global ? "analysis_etc/global_probs" : "analysis_etc/long_probs");
  const EtcLabels given(sizes, of_global);
  const std::vector<std::int64_t> long_offsets{0, sizes.length}, global_offsets{0, sizes.globals};
  sparse::LabelTensors labels;
  labels.examples = 1;
  labels.long_offsets = long_offsets.data();
  labels.global_offsets = global_offsets.data();
  labels.radius = sizes.radius;
  labels.relative_labels = 2;
  labels.l2l = given.l2l.data();
  labels.l2g = given.l2g.data();
  labels.g2l = given.g2l.data();
  const std::vector<std::uint8_t> all(static_cast<std::size_t>(sizes.globals * sizes.globals), 1);
  labels.g2g = all.data();
  auto batch = std::make_shared<AttentionBatch>();
  batch->operators.push_back({global ? build_global_tiles(labels) : build_long_tiles(labels), true});
  batch->heads = p.heads;
  batch->head_size = sizes.length + sizes.globals;
  batch->scale = 1;
  Operands longs(p.heads, p.queries, sizes.length, batch->head_size),
      globals(p.heads, 0, sizes.globals, batch->head_size);
  for (std::int64_t j = 0; j < sizes.length; ++j) longs.unit_key(j, sizes.globals + j);
  for (std::int64_t j = 0; j < sizes.globals; ++j) globals.unit_key(j, j);
  p.for_each_row([&](std::int64_t, std::int64_t head, std::int64_t query) {
    const Row own = p.row(0, head, query);
    for (std::int64_t c = 0; c < p.keys; ++c) {
      std::int64_t key = c;  // globals, then long tokens
      if (!global) key = c < sizes.window() ? sizes.globals + query + c - sizes.radius : c - sizes.window();
      if (own[static_cast<std::size_t>(c)] > 0)
        longs.query(query, head, key) = logarithm(own[static_cast<std::size_t>(c)]);
    }
  });
  const Tensor biases = Tensor::zeros({2, p.heads}, Purpose::weights);
  RelativeParameters relative;
  relative.biases = Var(biases);
  const Columns of_long = columns(longs.k), of_globals = columns(globals.k);
  AnalysisSettings settings;
  settings.member_label = 0;
  settings.reach = sizes.radius;
  const KeyColumns l{of_long, of_long}, g{of_globals, of_globals};
  return analysed(batch, 1, settings,
                  [&](std::int64_t) -> AttentionInputs {
                    return {columns(longs.q), {{global ? g : l, global ? l : g}}, relative};
                  })
      .front();
}

Results etc_by_tiles(const GoldenFile& file) {
  const EtcSizes sizes(file);
  Results found;
  for (const bool global : {false, true}) {
    const LayerStatistics of = etc_layer(file, global, sizes);
    const std::array<std::string, 3> names =
        global ? std::array<std::string, 3>{"global", "g2g", "g2l"} : std::array<std::string, 3>{"long", "l2l", "l2g"};
    for (std::int64_t row = 0; row < of.heads * of.queries; ++row) {
      const auto at = [&](QueryStatistic which) { return of.at(row / of.queries, row % of.queries, which); };
      found["entropy_" + names[0]].push_back(at(QueryStatistic::entropy));
      found["mass_" + names[1]].push_back(at(QueryStatistic::mass_0));
      found["mass_" + names[2]].push_back(at(QueryStatistic::mass_1));
      found["entropy_" + names[1] + "_renormalised"].push_back(at(QueryStatistic::entropy_0));
      found["entropy_" + names[2] + "_renormalised"].push_back(at(QueryStatistic::entropy_1));
      if (global) continue;
      found["mass_l2g_member"].push_back(at(QueryStatistic::member_1));
      found["mass_l2g_other"].push_back(at(QueryStatistic::mass_1) - at(QueryStatistic::member_1));
    }
    for (const double mass : of.distance_mass) {
      if (!global) found["mass_by_window_offset"].push_back(mass / static_cast<double>(of.queries));
    }
  }
  return found;
}

// ---- Comparison. ----

// The names of the group's results that are not found, or not within the tolerance.
std::vector<std::string> differing(const GoldenFile& file, const std::string& group, const Results& found,
                                   double tolerance, const std::vector<std::string>& inputs) {
  std::vector<std::string> names;
  for (const std::string& name : file.data_sets(group)) {
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    const Row expected = file.read<double>(group + "/" + name).values;
    const auto got = found.find(name);
    bool equal = got != found.end() && got->second.size() == expected.size();
    for (std::size_t i = 0; equal && i < expected.size(); ++i) {
      const double e = expected[i], g = got->second[i];
      equal = (std::isnan(e) && std::isnan(g)) || std::abs(e - g) <= tolerance + tolerance * std::abs(e);
    }
    if (!equal) names.push_back(name);
  }
  return names;
}

struct Way {
  const char* name;
  const char* group;
  std::function<Results(const GoldenFile&)> run;
  double tolerance;
  std::vector<std::string> inputs;
};

std::vector<Way> ways() {
  const std::vector<std::string> read{"probs", "real_queries"}, dense{"probs", "mask", "real_queries"};
  const std::vector<std::string> etc{"long_probs", "global_probs", "sentence_ids"};
  return {
      {"formulas", "analysis", dense_by_formula, 1e-10, read},
      {"tiles", "analysis", [](const GoldenFile& file) { return dense_by_tiles(file, false); }, 2e-5, dense},
      {"tiles, carried", "analysis", [](const GoldenFile& file) { return dense_by_tiles(file, true); }, 2e-5, dense},
      {"formulas", "analysis_etc", etc_by_formula, 1e-10, etc},
      {"tiles", "analysis_etc", etc_by_tiles, 2e-5, etc}};
}

TEST_CASE("the golden probabilities of every query are a distribution", "[golden]") {
  for (const std::string name : {"analysis/probs", "analysis_etc/long_probs", "analysis_etc/global_probs"}) {
    for_each_file_with(name, [&](const GoldenFile& file) {
      const Probabilities p(file, name);
      CAPTURE(name);
      p.for_each_row([&](std::int64_t layer, std::int64_t head, std::int64_t query) {
        const Row own = p.row(layer, head, query);
        CHECK(std::abs(reference::mass(own) - 1) < 1e-12);
        CHECK(std::none_of(own.begin(), own.end(), [](double x) { return x < 0; }));
      });
    });
  }
}

TEST_CASE("entropy, divergence and masses are those of the golden files", "[golden]") {
  for (const Way& way : ways()) {
    for_each_file_with(way.group, [&](const GoldenFile& file) {
      CAPTURE(way.name, way.group);
      CHECK(differing(file, way.group, way.run(file), way.tolerance, way.inputs) == std::vector<std::string>{});
      file.require_all_read(way.group);
    });
  }
}

TEST_CASE("a golden file of attention statistics with one number changed is noticed", "[golden]") {
  const TemporaryFolder folder;
  for_each_file_with("analysis/probs", [&](const GoldenFile& given) {
    const auto copy = folder / "changed.h5";
    std::filesystem::copy_file(given.path(), copy, std::filesystem::copy_options::overwrite_existing);
    for (const Way& way : ways()) {
      const Results found = way.run(given);
      for (const std::string& name : given.data_sets(way.group)) {
        CAPTURE(way.name, name);
        const std::string path = std::string("/") + way.group + "/" + name;
        const Row values = given.read<double>(path).values;
        const bool input = std::find(way.inputs.begin(), way.inputs.end(), name) != way.inputs.end();
        if (input && !name.ends_with("probs")) continue;
        // For probabilities, one near 0.3: in a row whose largest is nearly 1, a change of that one has no visible effect.
        const auto nearer = [&](double a, double b) { return input ? std::abs(a - 0.3) > std::abs(b - 0.3) : a < b; };
        const auto largest = std::max_element(values.begin(), values.end(), nearer) - values.begin();
        const double factor = name.starts_with("head_order") ? 2 : 1.001;
        H5Edit(copy).scale_element(path, largest, factor);
        {
          const GoldenFile file(copy);
          const Results now = input ? way.run(file) : found;
          CHECK(differing(file, way.group, now, way.tolerance, way.inputs) != std::vector<std::string>{});
        }
        H5Edit(copy).scale_element(path, largest, 1 / factor);
      }
    }
  });
}

}  // namespace
}  // namespace etc::test

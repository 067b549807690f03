// Every position method of the attention operator against dense_reference.h5, groups `attention`, `sinusoid` and `t5`.
//
// A case runs on every operator that supports it: self attention (divided by queries, labels of a window), with causal
// tiles and a memory if it is causal, and ETC's global attention, where global tokens are the case's queries and long
// tokens its keys (divided by keys).
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/position_bias.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/position_tables.h"
#include "sparse/etc_attention.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/patterns/causal.h"
#include "sparse/self_attention.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"

namespace etc::test {
namespace {

using Named = std::map<std::string, std::vector<float>>;  // by the names of the file, below the case's group

// The file's README: float32, values and gradients.
bool tolerated(const std::string& name, double expected, double actual) {
  const double allowed = name.starts_with("grad/") ? 1e-4 : 2e-5;
  return std::abs(expected - actual) <= allowed + allowed * std::abs(expected);
}

// [H, n, d] to [n, H, d] and back: to_a[j][i] = from[i][j], blocks of d numbers.
std::vector<float> exchanged(const std::vector<float>& from, std::int64_t first, std::int64_t second) {
  const std::int64_t size = std::ssize(from) / (first * second);
  std::vector<float> to(from.size());
  for (std::int64_t n = 0; n < std::ssize(from); ++n) {
    const std::int64_t c = n % size, j = n / size % second, i = n / size / second;
    to[static_cast<std::size_t>((j * first + i) * size + c)] = from[static_cast<std::size_t>(n)];
  }
  return to;
}

enum class Operator { self, causal, global };

struct Case {
  const GoldenFile& file;
  std::string name;
  Operator on;
  bool masked = true;  // false: all keys are visible

  std::string path(const std::string& of) const { return "attention/" + name + "/" + of; }
  bool has(const std::string& of) const { return file.has(path(of)); }
  GoldenArray<float> read(const std::string& of) const { return file.read<float>(path(of)); }
  std::int64_t setting(const char* attribute) const { return file.int_attribute("attention/" + name, attribute); }
  bool is(const std::string& prefix) const { return name.starts_with(prefix); }
  std::int64_t shape(const std::string& of, std::size_t axis) const { return read(of).shape.at(axis); }
  // From the mask, which every case has.
  std::int64_t queries() const { return shape("mask", 0); }
  std::int64_t keys() const { return shape("mask", 1); }
  std::int64_t heads() const { return shape("output", 0); }
  std::int64_t head_size() const { return shape("output", 2); }
  bool causal() const { return name.find("causal") != std::string::npos; }
  bool has_memory() const { return file.has_attribute("attention/" + name, "memory"); }
  std::vector<std::int32_t> mask() const { return file.read_mask(path("mask")); }
};

// The labels of the case by distance; without rows: none of them.
sparse::DistanceMap distances_of(const Case& c) {
  const std::int64_t last = c.keys() - 1;
  if (c.has_memory()) {
    const auto positions = c.file.read<std::int64_t>(c.path("const/sinusoid_positions")).values;
    REQUIRE(positions.back() - positions.front() + 1 == std::ssize(positions));
    return sparse::reversed_distances(positions.front(), positions.back());
  }
  if (c.is("t5")) {
    return sparse::t5_distances({c.setting("num_buckets"), c.setting("max_distance"), !c.causal()});
  }
  if (c.is("huang_method1")) return sparse::undirected_distances(last);
  if (c.is("huang") && c.name.find("clip") == std::string::npos) return sparse::clipped_distances(last);
  if (c.is("shaw") || c.is("nezha") || c.is("huang")) return sparse::clipped_distances(c.setting("clip"));
  return {};
}

// The labels [queries, keys] from a case's masks and listed labels, kMasked for invisible pairs.
std::vector<std::uint8_t> pair_labels(const Case& c) {
  const auto mask = c.mask();
  std::vector<std::uint8_t> labels(mask.size());
  if (c.has("const/labels")) {
    const auto stored = c.file.read<std::int64_t>(c.path("const/labels")).values;
    REQUIRE(stored.size() == mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) {
      REQUIRE((stored[i] >= 0 && stored[i] <= 2 * c.setting("clip")));
      labels[i] = static_cast<std::uint8_t>(stored[i]);
    }
  }
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (c.masked && mask[i] == 0) labels[i] = sparse::kMasked;
  }
  return labels;
}

sparse::AttentionTiles tiles_of(const Case& c) {
  const std::vector<std::uint8_t> pairs = pair_labels(c);
  const std::int64_t queries = c.queries(), keys = c.keys();
  const std::int64_t relative_labels = c.has("const/labels") ? 2 * c.setting("clip") + 1 : 0;
  const std::vector<std::int64_t> of_queries{0, queries}, of_keys{0, keys};
  if (c.on == Operator::causal) return sparse::build_causal_tiles({1, of_queries.data(), of_keys.data()});
  if (c.on == Operator::self) {
    const std::int64_t window = 2 * queries - 1;
    std::vector<std::uint8_t> by_distance(static_cast<std::size_t>(queries * window), sparse::kMasked);
    for (std::int64_t i = 0; i < queries * keys; ++i) {
      const std::int64_t query = i / keys, place = query * window + i % keys - query + queries - 1;
      by_distance[static_cast<std::size_t>(place)] = pairs[static_cast<std::size_t>(i)];
    }
    return sparse::build_self_tiles(
        {1, of_queries.data(), sparse::SequenceLabels::kFull, relative_labels, by_distance.data()});
  }
  const std::vector<std::uint8_t> unseen(static_cast<std::size_t>(queries * queries), sparse::kMasked);
  sparse::LabelTensors labels;
  labels.examples = 1;
  labels.long_offsets = of_keys.data();
  labels.global_offsets = of_queries.data();
  labels.relative_labels = relative_labels;
  labels.g2g = unseen.data();
  labels.g2l = pairs.data();
  return sparse::build_global_tiles(labels);
}

std::shared_ptr<AttentionBatch> batch_of(const Case& c) {
  auto batch = std::make_shared<AttentionBatch>();
  batch->operators.push_back({tiles_of(c), true});
  batch->heads = c.heads();
  batch->head_size = c.head_size();
  batch->scale = c.is("t5") && c.setting("scaled") == 0 ? 1.0f : 0.0f;
  sparse::TypeTiles& tiles = batch->operators[0].tiles.types[c.on == Operator::global ? 1 : 0];
  const sparse::DistanceMap map = distances_of(c);
  if (!map.rows.empty()) {
    // Causal tiles need the positions of the queries.
    std::vector<std::int64_t> shifts;
    if (c.on != Operator::causal) shifts = {c.has_memory() ? -c.setting("memory") : 0};
    sparse::label_by_distance(tiles, map, shifts);
  }
  batch->operators[0].relative = tiles.labelled();
  batch->scores.emplace(sparse::ScoreOptions{1, batch->heads, {true, true, true, true}, false, true, false},
                        batch->scored_operators());
  return batch;
}

// A case's parameters in the library's layout, rows before heads, and the storage for their gradients.
class Inputs {
 public:
  Inputs(Tape& tape, const Case& golden) : tape_(tape), c(golden) {
    for (const std::string& name : c.file.data_sets(c.path("param"))) {
      const auto array = c.read("param/" + name);
      Parameter& own = parameters_[name];
      own.name = name;
      heads_first_[name] = array.shape.size() > 1 && array.shape[0] == c.heads() && array.shape[1] != c.heads() &&
                           (name == "Q" || name == "K" || name == "V" || name == "w" || name == "rel_k");
      const std::int64_t rows = heads_first_[name] ? array.shape[1] : array.shape[0];
      const auto numbers = std::ssize(array.values);
      own.shape = {rows, numbers / rows};
      own.value = Tensor::from(heads_first_[name] ? exchanged(array.values, c.heads(), rows) : array.values, own.shape,
                               Purpose::weights);
    }
  }

  Parameter* find(const std::string& name) {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? nullptr : &found->second;
  }
  // A parameter as rows on the tape; its gradient is read from the variable.
  Var rows(const std::string& name) {
    Var& own = rows_[name];
    if (!own.defined()) own = Var(parameters_.at(name).value, true);
    return own;
  }

  Var project(const Var& x, const std::string& kernel, const std::string& bias = "") {
    return linear(tape_, x, {{{find(kernel), bias.empty() ? nullptr : find(bias)}}});
  }

  RelativeParameters tables() {
    RelativeParameters tables;
    tables.shared_heads = c.is("shaw_shared") || c.is("shaw_keys") || c.is("nezha");
    if (c.is("shaw") || c.is("etc")) tables.vectors = find("rel_k");
    tables.value_vectors = find("rel_v");
    tables.biases = find(c.is("t5") ? "bias" : "rel_bias");
    if (c.is("nezha")) tables.vectors = tables.value_vectors = constant("const/table");
    if (c.is("huang_method1") || c.is("huang_method2")) tables.factors = find("w");
    if (c.is("huang_method3")) tables.products = find("w");
    if (c.is("huang_method4")) tables.vectors = tables.key_vectors = find("w");
    if (c.has_memory()) {
      const Var rel = project(constant("const/sinusoid"), "W_R");
      tables.vectors = rel;
      tables.biases = position_bias(tape_, rel, c.heads(), {find("u"), find("v")});
    }
    return tables;
  }

  // q, k, v [rows, H·d].
  std::array<Var, 3> projections() {
    if (c.is("absolute")) {
      const Var x = residual(tape_, rows("X"), rows("pos"), {});
      return {project(x, "Wq"), project(x, "Wk"), project(x, "Wv")};
    }
    return {c.has_memory() ? biased_query() : rows("Q"), rows("K"), rows("V")};
  }

  // [H, n, d], the file's layout.
  std::vector<float> gradient(const std::string& name) {
    const auto of_rows = rows_.find(name);
    const Tensor own = of_rows != rows_.end() ? of_rows->second.grad() : parameters_.at(name).grad;
    REQUIRE(own);
    return heads_first_[name] ? exchanged(values_of(own), own.rows(), c.heads()) : values_of(own);
  }

 private:
  Var constant(const std::string& name) const {
    const auto array = c.read(name);
    return Var(Tensor::from(array.values, array.shape, Purpose::activations));
  }
  // q + u: a product with the unit matrix, whose bias is u.
  Var biased_query() {
    const std::int64_t width = c.heads() * c.head_size();
    std::vector<float> unit(static_cast<std::size_t>(width * width));
    for (std::int64_t i = 0; i < width; ++i) unit[static_cast<std::size_t>(i * width + i)] = 1.0f;
    unit_.shape = {width, width};
    unit_.value = Tensor::from(unit, unit_.shape, Purpose::weights);
    return linear(tape_, rows("Q"), {{{&unit_, find("u")}}});
  }

  Tape& tape_;
  const Case& c;
  std::map<std::string, Parameter> parameters_;
  std::map<std::string, bool> heads_first_;
  std::map<std::string, Var> rows_;
  Parameter unit_;
};

Var attend(Tape& tape, const Case& c, const std::shared_ptr<AttentionBatch>& batch, const std::array<Var, 3>& qkv,
           const RelativeParameters& tables) {
  const std::int64_t width = c.heads() * c.head_size();
  const auto zeros = [&](std::int64_t rows) {
    return Columns{Var(Tensor::zeros({rows, width}, Purpose::activations)), 0};
  };
  const KeyColumns seen{{qkv[1], 0}, {qkv[2], 0}};
  AttentionInputs inputs;
  inputs.q = {qkv[0], 0};
  inputs.relative = tables;
  if (c.on != Operator::global) {
    inputs.keys = {seen, {zeros(0), zeros(0)}};
  } else {
    inputs.keys = {KeyColumns{zeros(c.queries()), zeros(c.queries())}, seen};
  }
  return attention(tape, *batch->operators[0].tiles.op, batch, 0, Pass::forward, inputs);
}

// The pairs [queries, keys] whose scores are compared: all, but causal tiles have only the visible ones.
std::vector<bool> compared_scores(const Case& c) {
  const std::vector<std::int32_t> mask = c.mask();
  std::vector<bool> compared;
  for (const std::int32_t visible : mask) compared.push_back(c.on != Operator::causal || visible != 0);
  return compared;
}

// Scores [H, queries, keys] do not depend on the mask, so they are those of attention to all keys: the file has them of
// masked pairs, too. 0 at pairs that causal tiles do not have.
std::vector<float> scores_of(Case c) {
  c.masked = false;
  Tape tape(Recording::off);
  Inputs inputs(tape, c);
  const auto batch = batch_of(c);
  attend(tape, c, batch, inputs.projections(), inputs.tables());
  const sparse::ScoreState& state = *batch->scores;
  const std::int64_t queries = c.queries(), keys = c.keys(), heads = c.heads();
  // Columns of a query: by distance, the last one its own key where the tiles are causal.
  const bool window = c.on != Operator::global;
  const std::int64_t width = c.on == Operator::self ? 2 * queries - 1 : keys;
  std::vector<float> external(static_cast<std::size_t>(heads * queries * width));
  state.export_running(window ? sparse::kSelf : sparse::kG2l, external.data());
  const std::vector<bool> compared = compared_scores(c);
  std::vector<float> scores;
  for (std::int64_t i = 0; i < heads * queries * keys; ++i) {
    const std::int64_t key = i % keys, row = i / keys, query = row % queries;
    const std::int64_t place = window ? row * width + key - query + queries - 1 : i;
    const bool there = compared[static_cast<std::size_t>(query * keys + key)];
    scores.push_back(there ? external[static_cast<std::size_t>(place)] : 0.0f);
  }
  return scores;
}

// The probabilities [H, queries, keys]: outputs for values that are 1 at one key and component.
std::vector<float> probabilities(const Case& c) {
  const std::int64_t queries = c.queries(), keys = c.keys(), heads = c.heads(), size = c.head_size();
  std::vector<float> all(static_cast<std::size_t>(heads * queries * keys));
  for (std::int64_t first = 0; first < keys; first += size) {
    Tape tape(Recording::off);
    Inputs inputs(tape, c);
    std::array<Var, 3> qkv = inputs.projections();
    const Tensor v = Tensor::zeros({keys, heads * size}, Purpose::activations);
    const std::int64_t end = std::min(keys, first + size);
    for (std::int64_t key = first; key < end; ++key) {
      for (std::int64_t n = 0; n < heads; ++n) v.data()[(key * heads + n) * size + key - first] = 1.0f;
    }
    qkv[2] = Var(v);
    RelativeParameters tables = inputs.tables();
    tables.value_vectors = {};
    const Var y = attend(tape, c, batch_of(c), qkv, tables);
    for (std::int64_t i = 0; i < heads * queries; ++i) {
      const float* const row = y.value().data() + (i % queries * heads + i / queries) * size;
      for (std::int64_t key = first; key < end; ++key) all[static_cast<std::size_t>(i * keys + key)] = row[key - first];
    }
  }
  return all;
}

// The library's results for a case, under the file's names.
Named results_of(const Case& c) {
  Named results;
  Tape tape(Recording::on);
  Inputs inputs(tape, c);
  const auto batch = batch_of(c);
  {
    Var y = attend(tape, c, batch, inputs.projections(), inputs.tables());
    results["output"] = exchanged(values_of(y.value()), c.queries(), c.heads());
    const std::vector<float> upstream = exchanged(c.read("upstream").values, c.heads(), c.queries());
    std::copy(upstream.begin(), upstream.end(), y.grad().data());
  }
  results["scores"] = scores_of(c);
  results["probs"] = probabilities(c);
  tape.backward();
  for (const std::string& name : c.file.data_sets(c.path("param"))) results["grad/" + name] = inputs.gradient(name);
  return results;
}

// The names of the tensors of a file's case that differ from the results by more than the tolerance.
std::vector<std::string> differences(const Case& c, const Named& results) {
  std::vector<std::string> names{"output", "probs", "scores"}, differ;
  for (const std::string& name : c.file.data_sets(c.path("param"))) names.push_back("grad/" + name);
  const std::vector<bool> compared = compared_scores(c);
  for (const std::string& name : names) {
    const auto expected = c.file.read<double>(c.path(name)).values;
    const auto found = results.find(name);
    bool same = found != results.end() && found->second.size() == expected.size();
    for (std::size_t i = 0; same && i < expected.size(); ++i) {
      if (name == "scores" && !compared[i % compared.size()]) continue;
      same = tolerated(name, expected[i], static_cast<double>(found->second[i]));
    }
    if (!same) differ.push_back(name);
  }
  return differ;
}

bool is_pattern(const std::string& name) {
  return name == "performer" || name == "bigbird";
}

// Calls check(case) for every case of the file and each operator that supports it; returns their number.
std::size_t for_each_case(const GoldenFile& file, const std::function<void(const Case&)>& check) {
  std::size_t cases = 0;
  for (const std::string& name : file.groups("attention")) {
    if (is_pattern(name)) continue;
    ++cases;
    for (const Operator on : {Operator::self, Operator::causal, Operator::global}) {
      const Case c{file, name, on};
      if (on == Operator::self && c.queries() != c.keys()) continue;
      if (on == Operator::causal && !c.causal()) continue;
      CAPTURE(name, static_cast<int>(on));
      check(c);
    }
  }
  return cases;
}

TEST_CASE("every position method has the scores, probabilities, outputs and gradients of its formula", "[golden]") {
  register_cpu_backend();
  for_each_file_with("attention", [](const GoldenFile& file) {
    const std::size_t cases =
        for_each_case(file, [](const Case& c) { CHECK(differences(c, results_of(c)) == std::vector<std::string>{}); });
    CHECK(cases > 0);
    file.require_all_read("attention", {{"attention/performer*", "pattern_golden_test.cpp"},
                                        {"attention/bigbird*", "pattern_golden_test.cpp"},
                                        {"*/const/buckets", "compared with the tables below"},
                                        {"*/const/distance", "compared with the tables below"},
                                        {"*@model_dim", "compared with the tables below"}});
  });
}

// The largest number, and of scores also the largest at a masked pair.
std::vector<std::int64_t> places_to_change(const std::string& name, const std::vector<float>& values,
                                           const std::vector<std::int32_t>& mask) {
  std::vector<std::int64_t> places{largest_place(values, [](std::size_t) { return true; })};
  if (name != "scores") return places;
  const std::int64_t hidden = largest_place(values, [&](std::size_t i) { return mask[i % mask.size()] == 0; });
  if (hidden >= 0 && values[static_cast<std::size_t>(hidden)] != 0) places.push_back(hidden);
  return places;
}

TEST_CASE("a changed number in any tensor of a position method is noticed, there and nowhere else", "[golden]") {
  register_cpu_backend();
  for_each_file_with("attention", [](const GoldenFile& file) {
    for_each_case(file, [&](const Case& c) {
      const Named results = results_of(c);
      const TemporaryFolder folder;
      const auto copy = folder / "copy.h5";
      const auto mask = c.mask();
      for (const auto& [name, values] : results) {
        if (c.on == Operator::global && c.queries() == c.keys()) continue;  // the comparison is the same for both
        for (const std::int64_t place : places_to_change(name, values, mask)) {
          std::filesystem::copy_file(file.path(), copy, std::filesystem::copy_options::overwrite_existing);
          H5Edit(copy).scale_element("/" + c.path(name), place, 1.01);
          const GoldenFile changed(copy);
          CHECK(differences({changed, c.name, c.on}, results) == std::vector<std::string>{name});
        }
      }
      Named missing = results;
      missing.erase("grad/Q");
      if (missing.size() < results.size()) CHECK(differences(c, missing) == std::vector<std::string>{"grad/Q"});
    });
  });
}

TEST_CASE("the tables a method is fixed by are those the cases were made with", "[golden]") {
  for_each_file_with("attention", [](const GoldenFile& file) {
    std::size_t compared = 0;
    for_each_case(file, [&](const Case& c) {
      std::string name;
      std::vector<float> table;
      if (c.is("nezha")) {
        name = "const/table";
        table = nezha_table(c.is("nezha_index") ? NezhaRows::index : NezhaRows::signed_distance, c.setting("clip"),
                            c.head_size());
      } else if (c.has_memory()) {
        name = "const/sinusoid";
        const auto distances = c.file.read<std::int64_t>(c.path("const/distance")).values;
        for (std::int64_t i = 0; i < c.queries() * c.keys(); ++i) {
          const std::int64_t query = i / c.keys() + c.setting("memory");
          CHECK(distances.at(static_cast<std::size_t>(i)) == query - i % c.keys());
        }
        table = sinusoids(SinusoidLayout::halves_xl,
                          c.file.read<std::int64_t>(c.path("const/sinusoid_positions")).values, c.setting("model_dim"));
      } else if (c.is("t5")) {
        name = "const/buckets";
        const sparse::T5Buckets settings{c.setting("num_buckets"), c.setting("max_distance"), !c.causal()};
        for (std::int64_t i = 0; i < c.queries() * c.keys(); ++i) {
          table.push_back(static_cast<float>(sparse::t5_bucket(settings, i % c.keys() - i / c.keys())));
        }
      } else {
        return;
      }
      const auto expected = c.file.read<double>(c.path(name)).values;
      REQUIRE(expected.size() == table.size());
      for (std::size_t i = 0; i < table.size(); ++i) {
        CHECK(tolerated(name, expected[i], static_cast<double>(table[i])));
      }
      ++compared;
    });
    CHECK(compared > 0);
  });
}

TEST_CASE("every group of dense_reference.h5 has a test that compares it", "[golden]") {
  const std::set<std::string> known{
      "admin",
      "analysis",
      "analysis_etc",
      "attention",
      "beam_search",
      "bleu",
      "checkpoint_average",
      "cpc",
      "encoder",
      "glue_metrics",
      "instances",
      "masking",
      "meta",
      "label_smoothing",
      "mlm_nsp",
      "radam",
      "schedules",
      "seq2seq",
      "sinusoid",
      "squad",
      "t5",
      "residual_scores",
  };
  for_each_file_with("meta/worst_gradient_check", [&](const GoldenFile& file) {
    CHECK(file.string_attribute("", "schema") == "dense_reference 1");
    CHECK(file.string_attribute("", "float") == "float64");
    CHECK(file.data_sets().empty());
    for (const std::string& group : file.groups()) {
      CAPTURE(group);
      CHECK(known.count(group) == 1);
    }
  });
}

TEST_CASE("the file's gradients agreed with central differences when they were made", "[golden]") {
  for_each_file_with("meta/worst_gradient_check", [](const GoldenFile& file) {
    for (const double difference : file.read<double>("meta/worst_gradient_check").values) {
      CHECK((difference >= 0 && difference < 1e-8));
    }
  });
}

}  // namespace
}  // namespace etc::test

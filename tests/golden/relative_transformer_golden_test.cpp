// A dense encoder with ETC's relative positions against the reference's ordinary encoder with relative attention: files
// of kind `relative_transformer`, whose pairs have masks and labels of their own.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"

namespace etc::test {
namespace {

// The file's name of an encoder's parameter, below a group of weights; empty for the embedding stage, which it omits.
std::string name_in_file(const std::string& name) {
  const std::string prefix = "bert/encoder/layer_";
  if (!name.starts_with(prefix)) return "";
  static const std::map<std::string, std::string> kNames = {
      {"attention/self/query/", "attention_layer_*/relative_attention/query_projection/linear/"},
      {"attention/self/key/", "attention_layer_*/relative_attention/key_projection/linear/"},
      {"attention/self/value/", "attention_layer_*/relative_attention/value_projection/linear/"},
      {"attention/self/relative_table",
       "attention_layer_*/relative_attention/qkv_relative_attention/relative_emb_table"},
      {"attention/self/relative_bias_table",
       "attention_layer_*/relative_attention/qkv_relative_attention/relative_bias_table"},
      {"attention/output/dense/", "attention_layer_*/relative_attention/output_projection/"},
      {"attention/output/LayerNorm/", "attention_layer_*/layer_norm/"},
      {"intermediate/dense/", "feed_forward_layer_*/dense_layers/layer_0/"},
      {"output/dense/", "feed_forward_layer_*/dense_layers/layer_1/"},
      {"output/LayerNorm/", "feed_forward_layer_*/layer_norm/"},
  };
  const std::size_t slash = name.find('/', prefix.size());
  const std::string layer = name.substr(prefix.size(), slash - prefix.size()), rest = name.substr(slash + 1);
  for (const auto& [own, other] : kNames) {
    if (!rest.starts_with(own)) continue;
    std::string found = "relative_transformer_layers/" + other + rest.substr(own.size());
    return found.replace(found.find('*'), 1, layer);
  }
  return "";
}

DenseConfig config_of(const GoldenFile& file, const std::string& group) {
  const auto setting = [&](const char* name) { return file.int_attribute(group, name); };
  DenseConfig config;
  config.vocab_size = 2;
  config.max_absolute_position_embeddings = 0;
  config.embedding_layer_norm = false;
  config.final_layer_norm = DenseConfig::Choice::off;
  config.hidden_size = setting("hidden_size");
  config.num_hidden_layers = setting("num_layers");
  config.num_attention_heads = setting("num_heads");
  config.intermediate_size = setting("intermediate_size");
  config.hidden_act = file.string_attribute(group, "hidden_act");
  config.norm = setting("use_pre_activation_order") != 0 ? DenseConfig::Norm::pre_ln : DenseConfig::Norm::post_ln;
  config.relative_positions = DenseConfig::Method::etc;
  // The encoder's tables have an odd number of rows, 2·clip + 1. Labels are the file's, so a last row that no pair has
  // makes room for any number.
  config.relative_clip = setting("relative_vocab_size") / 2;
  return config;
}

// One batch of full rows; every pair has the file's label, or is masked.
EncoderInput input_of(const GoldenFile& file, const std::string& group) {
  const auto ids = file.read<std::int64_t>(group + "/inputs/relative_att_ids");
  const auto mask = file.read_mask(group + "/inputs/att_mask");
  const std::int64_t B = ids.shape.at(0), L = ids.shape.at(1), W = 2 * L - 1;
  REQUIRE(B == file.int_attribute(group, "batch"));
  REQUIRE(L == file.int_attribute(group, "length"));
  REQUIRE(ids.values.size() == mask.size());
  const std::int64_t labels = file.int_attribute(group, "relative_vocab_size");
  EncoderInput input;
  for (std::int64_t b = 1; b <= B; ++b) input.long_offsets.push_back(b * L);
  input.global_offsets.assign(input.long_offsets.size(), 0);
  input.labels.l2l = Buffer<std::uint8_t>(B * L * W, Purpose::labels);
  std::fill(input.labels.l2l.begin(), input.labels.l2l.end(), sparse::kMasked);
  for (std::int64_t i = 0; i < B * L * L; ++i) {
    const std::int64_t key = i % L, query = i / L % L, row = i / L, id = ids.values[static_cast<std::size_t>(i)];
    if (id < 0 || id >= labels) fail(file.path().string(), "expected ids below {}, got {}", labels, id);
    if (mask[static_cast<std::size_t>(i)] == 0) continue;
    input.labels.l2l[row * W + key - query + L - 1] = static_cast<std::uint8_t>(id);
  }
  return input;
}

bool is_table(const std::string& name) {
  return name.ends_with("_table");
}

// The numbers of a parameter that the file has: of tables only the rows of its labels.
std::int64_t size_in_file(const DenseConfig& config, std::int64_t labels, const Parameter& parameter) {
  return is_table(parameter.name) ? parameter.size() / (2 * config.clip() + 1) * labels : parameter.size();
}

// The numbers of one forward and backward pass, by the file's names below `outputs` and below `grads`.
struct RelativeResults {
  NamedNumbers outputs, gradients;
};

RelativeResults relative_results(const GoldenFile& file, const std::string& group) {
  const DenseConfig config = config_of(file, group);
  const std::int64_t labels = file.int_attribute(group, "relative_vocab_size");
  ParameterSet parameters;
  DenseEncoder encoder(config, parameters);
  parameters.initialize(1);  // the embedding stage, which is not run
  std::size_t named = 0;
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (name.empty()) continue;
    const auto values = file.read<float>(group + "/weights/" + name);
    if (std::ssize(values.values) != size_in_file(config, labels, *parameter)) {
      fail(file.path().string(), "{}: expected a row for each of {} labels", name, labels);
    }
    if (!is_table(name)) REQUIRE(values.shape == parameter->shape);
    std::fill_n(parameter->value.data(), parameter->size(), 0.0f);
    std::copy(values.values.begin(), values.values.end(), parameter->value.data());
    ++named;
  }
  REQUIRE(named == data_sets_below(file, group + "/weights").size());

  RelativeResults results;
  ForwardOptions options;
  options.watch = [&](std::int64_t layer, const Tensor& states, const Tensor&, const ExternalScores&) {
    if (layer >= 0) results.outputs["layer_" + std::to_string(layer)] = values_of(states);
  };
  Tape tape(Recording::on);
  const auto x = file.read<float>(group + "/inputs/x").values;
  Var in(Tensor::from(x, {std::ssize(x) / config.hidden_size, config.hidden_size}, Purpose::activations), true);
  {
    Var y = encoder.forward_layers(tape, in, input_of(file, group), options);
    results.outputs["y"] = values_of(y.value());
    const auto weights = file.read<float>(group + "/loss/W").values;
    REQUIRE(std::ssize(weights) == y.value().size());
    std::copy(weights.begin(), weights.end(), y.grad().data());
  }
  tape.backward();
  results.gradients["inputs_x"] = values_of(in.grad());
  for (const auto& parameter : parameters.all()) {
    const std::string name = name_in_file(parameter->name);
    if (name.empty()) continue;
    REQUIRE(parameter->grad);
    std::vector<float>& gradient = results.gradients["weights/" + name] = values_of(parameter->grad);
    gradient.resize(static_cast<std::size_t>(size_in_file(config, labels, *parameter)));
  }
  return results;
}

// Compares every data set of a folder; only the float32 one must have them all.
void compare_outputs(const GoldenFile& file, const std::string& folder, const NamedNumbers& actual, Worst& worst) {
  const std::vector<std::string> names = data_sets_below(file, folder);
  if (!folder.ends_with("64")) REQUIRE(names.size() == actual.size());
  for (const std::string& name : names) {
    CAPTURE(folder, name);
    REQUIRE(actual.count(name) == 1);
    const auto expected = file.read<double>(folder + "/" + name).values;
    worst.compare(folder + "/" + name, expected, actual.at(name));
  }
}

// The README's measure of gradients: relative to the tensor's largest number, at least 1 % of the largest of all.
void compare_gradients(const GoldenFile& file, const std::string& folder, const NamedNumbers& actual, Worst& worst) {
  const auto largest_of = [](const std::vector<double>& values) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::fabs(value));
    return largest;
  };
  const std::vector<std::string> names = data_sets_below(file, folder);
  REQUIRE(names.size() == actual.size());
  std::map<std::string, std::vector<double>> expected;
  double of_all = 0;
  for (const std::string& name : names) {
    expected[name] = file.read<double>(folder + "/" + name).values;
    of_all = std::max(of_all, largest_of(expected[name]));
  }
  for (const auto& [name, values] : expected) {
    CAPTURE(folder, name);
    REQUIRE(actual.count(name) == 1);
    worst.compare(folder + "/" + name, values, actual.at(name), std::max(0.01 * of_all, largest_of(values)));
  }
}

struct RelativeFigures {
  Worst outputs, gradients;
  bool tolerated() const { return outputs.value <= kOutputTolerance && gradients.value <= kOutputTolerance; }
};

RelativeFigures compare_relative(const GoldenFile& file, const std::string& group, const RelativeResults& results) {
  RelativeFigures figures;
  for (const std::string precision : {"", "64"}) {
    compare_outputs(file, group + "/outputs" + precision, results.outputs, figures.outputs);
    const std::string gradients = group + "/grads" + precision;
    if (precision.empty() || file.has(gradients)) {
      compare_gradients(file, gradients, results.gradients, figures.gradients);
    }
  }
  return figures;
}

TEST_CASE("a dense encoder with ETC's labels has the outputs and gradients of the published relative transformer",
          "[golden]") {
  register_cpu_backend();
  GoldenReport report("relative transformer", {"outputs", "gradients"});
  for (const std::filesystem::path& path : model_files("relative_transformer")) {
    const GoldenFile file(path);
    require_groups(file, "", {"post_ln", "pre_ln"});
    for (const std::string& group : file.groups()) {
      CAPTURE(path.filename().string(), group);
      const RelativeFigures figures = compare_relative(file, group, relative_results(file, group));
      INFO(figures.outputs.where << " " << figures.gradients.where);
      CHECK(figures.tolerated());
      report.row(group, {figures.outputs.value, figures.gradients.value});
    }
    file.require_all_read();
  }
}

// Changes the number with the largest magnitude by a hundredth, or in masks and ids the largest of a visible pair to 0.
void falsify_largest(const std::filesystem::path& path, const std::string& group, const std::string& name) {
  const auto values = GoldenFile(path).read<double>(group + "/" + name).values;
  const auto mask = GoldenFile(path).read_mask(group + "/inputs/att_mask");
  const bool of_pairs = name.ends_with("mask") || name.ends_with("ids");
  const auto largest = largest_place(values, [&](std::size_t i) { return !of_pairs || mask.at(i) != 0; });
  H5Edit(path).scale_element("/" + group + "/" + name, largest, of_pairs ? 0 : 1.01);
}

void require_changed_groups_noticed(Sweep sweep) {
  register_cpu_backend();
  for (const std::filesystem::path& original : model_files("relative_transformer")) {
    const GoldenFile unchanged(original);
    std::set<std::string> seen;
    for (const std::string& group : unchanged.groups()) {
      const RelativeResults results = relative_results(unchanged, group);
      std::vector<std::string> names = data_sets_below(unchanged, group);
      keep_new(sweep, seen, names);
      for (const std::string& name : names) {
        // The bias of keys shifts all scores of a row alike; what it is makes no difference.
        if (name.ends_with("key_projection/linear/bias")) continue;
        CAPTURE(group, name);
        const Falsified copy(original);
        falsify_largest(copy.path, group, name);
        const GoldenFile file(copy.path);
        const bool is_result = name.starts_with("outputs") || name.starts_with("grads");
        CHECK_FALSE(compare_relative(file, group, is_result ? results : relative_results(file, group)).tolerated());
      }
    }
  }
}

TEST_CASE("a changed number of any data set of a relative transformer is noticed", "[golden]") {
  require_changed_groups_noticed(Sweep::first_of_kind);
}

TEST_CASE("a changed number of every group of a relative transformer is noticed", "[golden][slow]") {
  require_changed_groups_noticed(Sweep::every_group);
}

// Appends a row of zeros to a table or its gradient [labels, …].
void append_row(const std::filesystem::path& path, const std::string& name) {
  auto array = GoldenFile(path).read<double>(name);
  array.values.resize(array.values.size() + array.values.size() / static_cast<std::size_t>(array.shape.at(0)));
  H5Edit(path).put_floats("/" + name, array.values, 4);
}

TEST_CASE("tables of an even number of labels are compared, too", "[golden]") {
  register_cpu_backend();
  for (const std::filesystem::path& original : model_files("relative_transformer")) {
    const std::string group = GoldenFile(original).groups().at(0);
    const std::int64_t labels = GoldenFile(original).int_attribute(group, "relative_vocab_size");
    const Falsified copy(original);
    for (const std::string& name : data_sets_below(GoldenFile(original), group)) {
      if (is_table(name)) append_row(copy.path, group + "/" + name);
    }
    H5Edit(copy.path).put_attribute("/" + group, "relative_vocab_size", labels + 1);
    const GoldenFile file(copy.path);
    CHECK(compare_relative(file, group, relative_results(file, group)).tolerated());
  }
}

TEST_CASE("masks of other numbers than 0 and 1, and labels without a row, are refused", "[golden]") {
  for (const std::filesystem::path& original : model_files("relative_transformer")) {
    const std::string group = GoldenFile(original).groups().at(0), inputs = group + "/inputs/";
    const auto shape = GoldenFile(original).read<std::int64_t>(inputs + "att_mask").shape;
    const std::vector<std::int64_t> large(static_cast<std::size_t>(shape.at(0) * shape.at(1) * shape.at(2)), 300);
    for (const char* const name : {"att_mask", "relative_att_ids"}) {
      const Falsified copy(original);
      H5Edit(copy.path).put_integers("/" + inputs + name, large, 4, true, shape, {});
      CHECK_THROWS_AS(input_of(GoldenFile(copy.path), group), Error);
    }
  }
}

}  // namespace
}  // namespace etc::test

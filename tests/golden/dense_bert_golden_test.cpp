// The dense encoder against the published BERT and RealFormer: every number of the golden files of kind `bert`.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/golden/bert_golden.h"
#include "tests/golden/falsified.h"
#include "tests/support/catch.h"
#include "tests/support/h5_edit.h"

namespace etc::test {
namespace {

void load_weights(const GoldenFile& file, ParameterSet& parameters) {
  for (const auto& parameter : parameters.all()) {
    const GoldenArray<float> weights = file.read<float>("weights/" + parameter->name);
    parameter->value = Tensor::from(weights.values, parameter->shape, Purpose::weights);
  }
}

// Adds the states between the two sub-layers of every layer. They cannot be observed there, so each layer's states are taken
// from a model with one more layer (with arbitrary weights), in which the layer's attention is followed by another
// attention: sub-layers (sf)^layer, then all remaining attentions, then all remaining feed-forwards.
void add_attention_blocks(const BertGolden& golden, const ParameterSet& weights, BertRun& run) {
  DenseConfig config = convert::dense_config_for(golden.config);
  const std::int64_t layers = config.num_hidden_layers++;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    config.sublayer_order.clear();
    for (std::int64_t below = 0; below < layer; ++below) config.sublayer_order += "sf";
    for (const char sublayer : {'s', 'f'}) {
      config.sublayer_order.append(static_cast<std::size_t>(config.num_hidden_layers - layer), sublayer);
    }
    ParameterSet parameters;
    DenseEncoder encoder(config, parameters);
    parameters.initialize(1);
    for (const auto& parameter : weights.all()) parameters.at(parameter->name).value = parameter->value;
    ForwardOptions options;
    options.watch = [&](std::int64_t seen, const Tensor& states, const Tensor&, const ExternalScores&) {
      if (seen != layer) return;
      run.outputs[fmt::format("layer_{}/attention_block", layer)] = {states.data(), states.data() + states.size()};
    };
    Tape tape(Recording::off);
    encoder.forward(tape, encoder_input(golden.input, golden.input.length - 1), options);
  }
}

// A forward pass and, if the file has gradients, a backward pass, with every number that the file has.
BertRun bert_run(const BertGolden& golden) {
  register_cpu_backend();
  ParameterSet parameters;
  DenseEncoder encoder(convert::dense_config_for(golden.config), parameters);
  load_weights(golden.file, parameters);
  const bool backward = golden.file.has("grads");
  BertRun run;
  Tape tape(backward ? Recording::on : Recording::off);
  {
    const EncoderInput input = encoder_input(golden.input, golden.input.length - 1);
    EncoderStates output = encoder.forward(tape, input, watched(golden, run));
    CHECK(!output.global_states.defined());
    add_loss(golden, output.long_states, run);
  }
  if (backward) tape.backward();
  for (const auto& parameter : parameters.all()) {
    if (!parameter->grad) continue;
    run.gradients[parameter->name] = {parameter->grad.data(), parameter->grad.data() + parameter->grad.size()};
  }
  add_attention_blocks(golden, parameters, run);
  return run;
}

BertDifference difference_of(const BertGolden& golden, const BertRun& run) {
  BertDifference difference;
  difference.compare(golden, run);
  return difference;
}

// Whether a run reads the data set; the others are only compared with it.
bool is_read(const std::string& name) {
  return name.starts_with("inputs/") || name.starts_with("weights/") || name.starts_with("loss/W_");
}

// All data sets except weights of layers above the first, which are read in the same way, gradients of key biases, which
// are rounding errors of sums that are zero, and gradients that are zero (one key in every row) with their weights.
std::vector<std::string> falsified_data_sets(const GoldenFile& file) {
  const std::string layer = "weights/bert/encoder/layer_";
  const auto is_zero = [&](const std::string& name) {
    const std::vector<double> numbers = file.read<double>(name).values;
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == 0; });
  };
  std::vector<std::string> names = data_sets_below(file, "");
  std::erase_if(names, [&](const std::string& name) {
    const bool gradient = name.starts_with("grads"), weight = name.starts_with("weights/");
    return (gradient && name.ends_with("key/bias")) || (name.starts_with(layer) && !name.starts_with(layer + "0/")) ||
           (gradient && is_zero(name)) || (weight && is_zero("grads" + name.substr(name.find('/'))));
  });
  return names;
}

// The number with the largest magnitude; for a weight, the one that changes the loss most, since table rows may be unused.
std::int64_t number_that_shows(const BertGolden& golden, const std::string& name) {
  std::vector<double> numbers = golden.file.read<double>(name).values;
  if (name.starts_with("weights/")) {
    const auto slopes = golden.file.read<double>("grads" + name.substr(name.find('/'))).values;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= slopes.at(i);
  }
  const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
  return std::max_element(numbers.begin(), numbers.end(), smaller) - numbers.begin();
}

// Converts the source to a model directory; every tensor must be used.
void convert_to_dense(const convert::TensorSource& source, const convert::BertConfig& bert,
                      const std::filesystem::path& model) {
  ParameterSet converted;
  const convert::ForeignEncoder foreign = convert::bert_encoder(bert, convert::BertKind::bert, source);
  const auto report = convert::read_foreign(source, foreign, false, converted);
  CHECK(report.left_out.empty());
  convert::save_converted_model(model, {{{"model", foreign.config.to_json()}}, converted}, report);
}

TEST_CASE("a dense encoder has the weights of the published BERT through files of every kind", "[golden]") {
  for (const std::filesystem::path& path : model_files("bert")) {
    CAPTURE(path.filename().string());
    const BertGolden golden(path);
    const TemporaryFolder folder;
    // A TensorFlow checkpoint is converted to a dense encoder, that to a PyTorch BERT, and this again to a dense encoder.
    convert_to_dense(*golden.checkpoint(folder), golden.config, folder / "dense");
    convert::write_bert(folder / "dense", folder / "bert");
    const Json written = read_json_file(folder / "bert/config.json");
    convert_to_dense(*convert::open_tensors(folder / "bert"), convert::bert_config_from_json(written, "config.json"),
                     folder / "again");
    CHECK(read_file(folder / "again/model.safetensors") == read_file(folder / "dense/model.safetensors"));
    ParameterSet read, expected;
    const DenseConfig config = convert::dense_config_for(golden.config);
    const DenseEncoder encoder(config, read), same(config, expected);
    load_parameters(folder / "again/model.safetensors", read, Match::encoder);
    load_weights(golden.file, expected);
    for (const auto& parameter : expected.all()) {
      CAPTURE(parameter->name);
      const Tensor& values = read.at(parameter->name).value;
      REQUIRE(values.shape() == parameter->value.shape());
      CHECK(std::equal(values.data(), values.data() + values.size(), parameter->value.data()));
    }
  }
}

TEST_CASE("a dense encoder has the states, scores, loss and gradients of the published BERT and RealFormer",
          "[golden]") {
  const auto files = model_files("bert");
  if (files.empty()) return;
  GoldenReport report("BERT as a dense encoder: worst difference (outputs, scores: absolute; gradients: relative)",
                      BertDifference::columns());
  for (const std::filesystem::path& path : files) {
    CAPTURE(path.filename().string());
    const BertGolden golden(path);
    const BertRun run = bert_run(golden);
    for (const std::string& name : data_sets_below(golden.file, "outputs")) {
      CAPTURE(name);
      CHECK(run.outputs.count(name) == 1);
    }
    const BertDifference difference = difference_of(golden, run);
    difference.check();
    report.row(path.filename().string(), difference.figures(golden));
    golden.file.require_all_read("", kStatements);
  }
}

void require_changed_bert_noticed(Sweep sweep) {
  std::set<std::string> seen;
  for (const std::filesystem::path& path : model_files("bert")) {
    CAPTURE(path.filename().string());
    const BertGolden golden(path);
    if (!golden.file.has("grads")) continue;
    std::vector<std::string> names = falsified_data_sets(golden.file);
    keep_new(sweep, seen, names);
    if (names.empty()) continue;
    const BertRun run = bert_run(golden);
    REQUIRE(difference_of(golden, run).tolerated());
    for (const std::string& name : names) {
      CAPTURE(name);
      const Falsified copy(path);
      const std::int64_t at = number_that_shows(golden, name);
      const double value = golden.file.read<double>(name).values.at(static_cast<std::size_t>(at));
      // A token, its type or its mask becomes 0, a type that is 0 becomes 1.
      const double of_input = value == 0 ? 1 : -value;
      const double by = name.starts_with("inputs/") ? of_input : falsification(name, value);
      H5Edit(copy.path).shift_element("/" + name, at, by);
      const BertGolden changed(copy.path);
      CHECK_FALSE(difference_of(changed, is_read(name) ? bert_run(changed) : run).tolerated());
    }
  }
}

TEST_CASE("a changed number in any group of a BERT file is noticed", "[golden]") {
  require_changed_bert_noticed(Sweep::first_of_kind);
}

TEST_CASE("a changed number in any group of every BERT file is noticed", "[golden][slow]") {
  require_changed_bert_noticed(Sweep::every_group);
}

}  // namespace
}  // namespace etc::test

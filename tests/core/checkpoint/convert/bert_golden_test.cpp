// BERT with and without residual scores through an ETC configuration: golden files of kind `bert`, golden TensorFlow
// checkpoints of BERT, and real BERT files against a BERT in double that itself agrees with the golden files.
#include <cmath>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/convert/bert/lift.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/checkpoint/convert/bert_model.h"
#include "tests/golden/bert_golden.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::convert;
using test::BertDifference;
using test::BertGolden;
using test::BertInput;
using test::GoldenReport;
namespace fs = std::filesystem;

namespace {

const std::string kTokenTypes = "bert/embeddings/token_type_embeddings";

// For each variable of BERT, the sum of the gradients of all parameters into which it was copied.
std::map<std::string, std::vector<double>> gradients_of_bert(const ParameterSet& parameters) {
  std::map<std::string, std::vector<double>> sums;
  const auto add = [&](const std::string& variable, const Parameter& parameter) {
    std::vector<double>& sum = sums[variable];
    sum.resize(static_cast<std::size_t>(parameter.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += parameter.grad.data()[i];
  };
  for (const auto& parameter : parameters.all()) {
    if (!parameter->grad) continue;
    const std::string& name = parameter->name;
    if (name.ends_with("token_emb_lookup/embedding_table")) add("bert/embeddings/word_embeddings", *parameter);
    if (name.ends_with("segment_emb_lookup/embedding_table")) add(kTokenTypes, *parameter);
    if (name == "position_emb_lookup_long/embedding_table") add("bert/embeddings/position_embeddings", *parameter);
    if (const std::string variable = lifted_from(name); !variable.empty()) add(variable, *parameter);
  }
  return sums;
}

// The same gradients in the form of the golden file.
test::NamedNumbers named_gradients(const BertGolden& golden, const ParameterSet& parameters) {
  test::NamedNumbers all;
  for (const auto& [name, sum] : gradients_of_bert(parameters)) {
    std::vector<float>& gradient = all[name] = {sum.begin(), sum.end()};
    if (name != kTokenTypes) continue;
    // The segment table has more rows than there are token types.
    const auto rows = static_cast<std::size_t>(golden.config.type_vocab_size * golden.config.hidden_size);
    REQUIRE(sum.size() >= rows);
    for (std::size_t i = rows; i < sum.size(); ++i) REQUIRE(sum[i] == 0);
    gradient.resize(rows);
  }
  return all;
}

// Lifts the checkpoint into `config`, runs it on the golden input and compares all results with the file.
BertDifference run(const BertGolden& golden, const TensorSource& checkpoint, const EtcConfig& config) {
  register_cpu_backend();
  ParameterSet parameters;
  LiftOptions lift;
  lift.exact = true;
  lift_bert(checkpoint, golden.config, config, nullptr, lift, parameters);
  ParameterSet of_model;
  EtcEncoder encoder(config, of_model);
  for (const auto& parameter : of_model.all()) parameter->value = parameters.at(parameter->name).value;

  test::BertRun result;
  const bool backward = golden.file.has("grads");
  Tape tape(backward ? Recording::on : Recording::off);
  {
    EncoderStates output = encoder.forward(tape, test::etc_input(golden.input, config), test::watched(golden, result));
    test::add_loss(golden, output.long_states, result);
  }
  if (backward) {
    tape.backward();
    result.gradients.merge(named_gradients(golden, of_model));
  }
  BertDifference difference;
  difference.compare(golden, result);
  return difference;
}

void check(GoldenReport& report, const std::string& name, const BertGolden& golden, const BertDifference& difference) {
  difference.check();
  report.row(name, difference.figures(golden));
}

// The ETC configurations in which a BERT is run: a window that just covers the input or is wider, separate or shared
// projections, with relative tables (set to zero) or without.
std::vector<std::pair<std::string, EtcConfig>> configurations(const BertGolden& golden) {
  EtcConfig separate = etc_config_for(golden.config, BertKind::bert, true);
  EtcConfig shared = separate;
  shared.local_radius = std::max<std::int64_t>(1, golden.input.length - 1);
  shared.share_qkv_projections = true;
  shared.share_att_output_projection = true;
  shared.relative_vocab_size.reset();
  shared.relative_pos_max_distance = 0;
  EtcConfig split = separate;
  split.share_kv_projections = true;
  split.share_feed_forward_params = false;
  return {{"separate", separate}, {"shared", shared}, {"split", split}};
}

}  // namespace

TEST_CASE("BERT and its RealFormer run through ETC as published, forward and backward", "[convert][golden]") {
  const auto files = test::model_files("bert");
  if (files.empty()) return;
  GoldenReport report("BERT through ETC, worst difference", BertDifference::columns());
  for (const fs::path& path : files) {
    CAPTURE(path.string());
    const test::TemporaryFolder folder;
    const BertGolden golden(path);
    const auto checkpoint = golden.checkpoint(folder);
    for (const auto& [name, config] : configurations(golden)) {
      check(report, path.stem().string() + " " + name, golden, run(golden, *checkpoint, config));
    }
  }
}

TEST_CASE("TensorFlow checkpoints of BERT give the golden outputs", "[convert][golden]") {
  GoldenReport report("BERT checkpoints, worst difference", BertDifference::columns());
  const auto checkpoints = test::golden_checkpoints("bert_config.json");
  if (checkpoints.empty()) return test::skip("no BERT checkpoints with golden outputs");
  for (const fs::path& checkpoint : checkpoints) {
    CAPTURE(checkpoint.string());
    const BertGolden golden(test::golden_file_of(checkpoint));
    test::require_golden_config(golden.file, checkpoint / "bert_config.json");
    // The configuration of the checkpoint has only use_running_mean, as RealFormer's own configurations do.
    const BertConfig config =
        bert_config_from_json(read_json_file(checkpoint / "bert_config.json"), "bert_config.json");
    REQUIRE(config.use_residual_attention == golden.config.use_residual_attention);
    const EtcConfig etc = etc_config_for(config, BertKind::bert, true);
    check(report, checkpoint.filename().string(), golden, run(golden, *open_tensors(checkpoint), etc));
  }
}

namespace {

double worst_difference(const reference::realformer::Matrix& expected, const float* actual) {
  double worst = 0;
  for (const auto& row : expected) {
    for (const double x : row) test::keep_worst(worst, std::abs(x - *actual++));
  }
  return worst;
}

}  // namespace

TEST_CASE("the BERT in double that real files are compared with gives the published numbers", "[convert][golden]") {
  for (const fs::path& path : test::model_files("bert")) {
    CAPTURE(path.string());
    const BertGolden golden(path);
    const auto read = [&](const std::string& name) { return golden.file.read<double>("weights/" + name).values; };
    const auto expected = golden.file.read<double>("outputs64/sequence").values;
    const std::int64_t length = golden.input.length, hidden = golden.config.hidden_size;
    for (std::int64_t b = 0; b < golden.input.batch; ++b) {
      // Without padding: the tokens before the first invalid one; sequences with valid tokens after it are skipped.
      std::vector<std::int32_t> ids, types;
      const auto first = static_cast<std::size_t>(b * length);
      for (std::size_t i = first; i < first + static_cast<std::size_t>(length) && golden.input.mask[i] != 0; ++i) {
        ids.push_back(golden.input.ids[i]);
        types.push_back(golden.input.types[i]);
      }
      const auto valid =
          std::count(golden.input.mask.begin() + b * length, golden.input.mask.begin() + (b + 1) * length, 1);
      if (valid != static_cast<std::int64_t>(ids.size())) continue;
      const auto states = test::reference_bert(golden.config, read, ids, types, false);
      for (std::size_t i = 0; i < states.size(); ++i) {
        for (std::size_t j = 0; j < states[i].size(); ++j) {
          const std::size_t at = (first + i) * static_cast<std::size_t>(hidden) + j;
          REQUIRE(std::abs(states[i][j] - expected[at]) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("real BERT checkpoints, every form of file, give the hidden states of their formulas", "[convert][golden]") {
  register_cpu_backend();
  const auto data = test::real_data_folder();
  GoldenReport report("real BERT checkpoints, worst difference of hidden states", {"tanh gelu", "erf gelu"});
  int found = 0;
  if (data && fs::exists(*data / "checkpoints")) {
    for (const auto& entry : fs::directory_iterator(*data / "checkpoints")) {
      std::vector<fs::path> files;
      fs::path config_file;
      for (const auto& file : fs::directory_iterator(entry.path())) {
        const std::string name = file.path().filename().string();
        if (name == "model.safetensors" || name == "pytorch_model.bin") files.push_back(file.path());
        if (name.ends_with(".index")) files.push_back(fs::path(file.path()).replace_extension());
        if (name == "config.json" || name == "bert_config.json") config_file = file.path();
      }
      if (config_file.empty()) continue;
      const BertConfig bert = bert_config_from_json(read_json_file(config_file), config_file.string());
      const EtcConfig config = etc_config_for(bert, BertKind::bert, true);
      BertInput input;
      input.batch = 1;
      input.length = std::min<std::int64_t>(40, bert.max_position_embeddings);
      for (std::int32_t i = 0; i < input.length; ++i) {
        input.ids.push_back(i * 37 % static_cast<std::int32_t>(bert.vocab_size));
        input.types.push_back(i * 2 < input.length ? 0 : 1);
        input.mask.push_back(1);
      }
      for (const fs::path& file : files) {
        CAPTURE(file.string());
        const auto source = open_tensors(file);
        ParameterSet parameters;
        LiftOptions options;
        options.exact = true;
        lift_bert(*source, bert, config, nullptr, options, parameters);
        ParameterSet of_model;
        EtcEncoder encoder(config, of_model);
        for (const auto& parameter : of_model.all()) parameter->value = parameters.at(parameter->name).value;
        Tape tape(Recording::off);
        const Tensor states = encoder.forward(tape, test::etc_input(input, config), {}).long_states.value();

        // Reads the variables independently of the conversion, by their names in the file, and transposes them here.
        const auto read = [&](const std::string& name) {
          std::string stored = name;
          bool transposed = false;
          if (source->tensors().count(name) == 0) {
            stored = name.substr(5);  // without "bert/"
            std::replace(stored.begin(), stored.end(), '/', '.');
            const auto swap = [&](const std::string& from, const std::string& to) {
              const std::size_t at = stored.find(from);
              if (at != std::string::npos) stored.replace(at, from.size(), to);
            };
            transposed = stored.ends_with(".kernel");
            swap("encoder.layer_", "encoder.layer.");
            swap(".kernel", ".weight");
            swap(".gamma", ".weight");
            swap(".beta", ".bias");
            if (stored.ends_with("_embeddings")) stored += ".weight";
          }
          const SourceTensor& tensor = source->at(stored);
          std::vector<float> floats(static_cast<std::size_t>(tensor.count()));
          source->read_floats(stored, floats.data());
          std::vector<double> numbers(floats.begin(), floats.end());
          if (transposed) {
            const auto out = static_cast<std::size_t>(tensor.shape[0]), in = static_cast<std::size_t>(tensor.shape[1]);
            for (std::size_t i = 0; i < in; ++i) {
              for (std::size_t j = 0; j < out; ++j) numbers[i * out + j] = floats[j * in + i];
            }
          }
          return numbers;
        };
        const double tanh_form =
            worst_difference(test::reference_bert(bert, read, input.ids, input.types, false), states.data());
        const double erf_form =
            worst_difference(test::reference_bert(bert, read, input.ids, input.types, true), states.data());
        CHECK(tanh_form <= test::kOutputTolerance);
        report.row(entry.path().filename().string() + " " + file.filename().string(), {tanh_form, erf_form});
        ++found;
      }
    }
  }
  if (found == 0) test::skip("no real BERT checkpoints");
}

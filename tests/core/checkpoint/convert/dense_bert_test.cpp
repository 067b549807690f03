// BERT as a dense encoder and back: every tensor bit by bit, refused models, and exported files read by other programs.
#include "etc_core/checkpoint/convert/bert/dense_bert.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "etc_core/nn/etc_config.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::HubBert;
namespace fs = std::filesystem;

namespace {

// Converts a source to a dense encoder in the model directory `model`.
void convert_to_dense(const TensorSource& source, const BertConfig& bert, bool keep_heads, const fs::path& model) {
  ParameterSet parameters;
  const ForeignEncoder foreign = bert_encoder(bert, BertKind::bert, source);
  const ConversionReport report = read_foreign(source, foreign, keep_heads, parameters);
  save_converted_model(model, {{{"model", foreign.config.to_json()}}, parameters}, report);
}

HubBert with_heads(const BertConfig& bert) {
  HubBert hub(bert);
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    Tensor values = Tensor::empty(std::move(shape), Purpose::weights);
    for (std::int64_t i = 0; i < values.size(); ++i) values.data()[i] = 0.5f - static_cast<float>(i % 7);
    hub.tensors[name] = values;
  };
  add("cls.predictions.transform.dense.weight", {8, 8});
  add("cls.predictions.transform.dense.bias", {8});
  add("cls.predictions.transform.LayerNorm.weight", {8});
  add("cls.predictions.transform.LayerNorm.bias", {8});
  add("cls.predictions.bias", {12});
  add("cls.seq_relationship.weight", {2, 8});
  add("cls.seq_relationship.bias", {2});
  return hub;
}

// The tensors of a file by their names without `prefix`.
std::map<std::string, Tensor> tensors_of(const fs::path& file, const std::string& prefix) {
  const TensorFileReader reader(file);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : reader.entries()) {
    const std::string rest = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    tensors[rest] = reader.read_tensor(name, Purpose::weights);
  }
  return tensors;
}

void require_same_bits(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, values] : a) {
    CAPTURE(name);
    const auto other = b.find(name);
    REQUIRE(other != b.end());
    REQUIRE(values.shape() == other->second.shape());
    REQUIRE(std::memcmp(values.data(), other->second.data(), static_cast<std::size_t>(values.size()) * 4) == 0);
  }
}

Tensor states_of(const fs::path& model, const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& types) {
  register_cpu_backend();
  ParameterSet parameters;
  const auto encoder = read_encoder_config(model)->make_encoder(parameters);
  load_parameters(model / "model.safetensors", parameters, Match::encoder);
  EncoderInput input;
  input.long_offsets = {0, std::ssize(ids)};
  input.global_offsets = {0, 0};
  input.token_ids = ids;
  input.segment_ids = types;
  Tape tape(Recording::off);
  return encoder->forward(tape, input, {}).long_states.value();
}

}  // namespace

TEST_CASE("BERT goes into a dense encoder and back bit by bit, with its pooler and, unless unwanted, its heads",
          "[convert]") {
  const BertConfig bert = test::small_bert();
  for (const bool heads : {false, true}) {
    for (const std::string prefix : {"", "bert."}) {
      CAPTURE(heads, prefix);
      const test::TemporaryFolder folder;
      const HubBert hub = heads ? with_heads(bert) : HubBert(bert, prefix);
      hub.write(folder / "hub.safetensors");
      convert_to_dense(*open_tensors(folder / "hub.safetensors"), bert, heads, folder / "dense");
      write_bert(folder / "dense", folder / "bert");
      require_same_bits(tensors_of(folder / "hub.safetensors", "bert."),
                        tensors_of(folder / "bert/model.safetensors", "bert."));
      // With heads the names are those of BertForPreTraining, without those of BertModel.
      const TensorFileReader written(folder / "bert/model.safetensors");
      CHECK(written.has(heads ? "bert.pooler.dense.weight" : "pooler.dense.weight"));
      const Json config = read_json_file(folder / "bert/config.json");
      CHECK(config.at("architectures").at(0) == (heads ? "BertForPreTraining" : "BertModel"));

      const BertConfig again = bert_config_from_json(config, "config.json");
      convert_to_dense(*open_tensors(folder / "bert"), again, heads, folder / "again");
      CHECK(read_file(folder / "again/model.safetensors") == read_file(folder / "dense/model.safetensors"));
      CHECK(read_encoder_config(folder / "again")->to_json() == read_encoder_config(folder / "dense")->to_json());
    }
  }
}

TEST_CASE("what is no BERT is refused, and heads of other tasks are left out and said", "[convert]") {
  const test::TemporaryFolder folder;
  const auto message = [&](const EncoderConfig& config) -> std::string {
    ParameterSet parameters;
    const auto encoder = config.make_encoder(parameters);
    parameters.add("answer_type_output_weights", {5, config.hidden_size}, {});
    parameters.initialize(1);
    save_model(folder / "model", {{"model", config.to_json()}}, parameters);
    try {
      return write_bert(folder / "model", folder / "out");
    } catch (const UsageError& error) {
      CHECK(!fs::exists(folder / "out/model.safetensors"));
      return error.what();
    }
  };
  DenseConfig plain = dense_config_for(test::small_bert());
  CHECK_THAT(message(plain), Contains("left out, since they are no BERT's: answer_type_output_weights"));
  fs::remove_all(folder / "out");
  const auto changed = [&](auto&& change) {
    DenseConfig config = plain;
    change(config);
    return message(config);
  };
  CHECK_THAT(changed([](DenseConfig& c) { c.norm = DenseConfig::Norm::pre_ln; }),
             Contains("norm: expected post_ln, got \"pre_ln\"") && Contains("final_layer_norm: expected off"));
  CHECK_THAT(changed([](DenseConfig& c) { c.sublayer_order = "ssff"; }), Contains("sublayer_order: expected none"));
  CHECK_THAT(changed([](DenseConfig& c) { c.embedding_size = 4; }), Contains("embedding_size: expected none, got 4"));
  CHECK_THAT(changed([](DenseConfig& c) { c.local_radius = 4; }), Contains("local_radius: expected 0, got 4"));
  CHECK_THAT(changed([](DenseConfig& c) { c.max_absolute_position_embeddings = 0; }),
             Contains("max_absolute_position_embeddings: expected at least 1"));
  CHECK_THAT(changed([](DenseConfig& c) {
               c.max_absolute_position_embeddings = 0;
               c.relative_positions = PositionConfig::Method::shaw;
             }),
             Contains("relative_positions: expected none, got \"shaw\""));
  CHECK_THAT(changed([](DenseConfig& c) { c.embedding_layer_norm = false; }), Contains("embedding_layer_norm"));
  CHECK_THAT(changed([](DenseConfig& c) { c.att_size_per_head = 2; }), Contains("att_size_per_head: expected none"));
  CHECK_THAT(message(test::small_etc_config()), Contains("expected a dense encoder"));
  CHECK_THAT(changed([](DenseConfig& c) { c.use_residual_attention = c.use_running_mean = true; }),
             Contains("computes it without them"));
  const Json written = read_json_file(folder / "out/config.json");
  CHECK(written.at("use_running_mean") == true);
}

TEST_CASE("a BERT whose tensors do not fit a dense encoder is refused, all of them being listed", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = test::small_bert();
  HubBert hub(bert);
  hub.tensors.erase("bert.encoder.layer.1.output.dense.weight");
  hub.tensors["bert.encoder.layer.0.output.dense.bias"] = Tensor::from({1, 2}, {2}, Purpose::weights);
  hub.write(folder / "hub.safetensors");
  const auto read = [&](bool heads) {
    ParameterSet parameters;
    const auto source = open_tensors(folder / "hub.safetensors");
    read_foreign(*source, bert_encoder(bert, BertKind::bert, *source), heads, parameters);
  };
  CHECK_THROWS_WITH(read(false),
                    Contains("2 unmatched: bert.encoder.layer.0.output.dense.bias: expected [8], got F32 [2]; "
                             "bert/encoder/layer_1/output/dense/kernel [10, 8] absent"));
  hub = HubBert(bert);
  hub.tensors["bert.encoder.layer.0.output.dense.bias"].data()[3] = std::numeric_limits<float>::quiet_NaN();
  hub.write(folder / "hub.safetensors");
  CHECK_THROWS_WITH(read(false),
                    Contains("layer_0/output/dense/bias [8]: expected finite weights, got nan at element [3]"));
}

namespace {

void read_bert_mutants(std::uint64_t count) {
  const test::TemporaryFolder folder;
  const BertConfig bert = test::small_bert();
  HubBert(bert).write(folder / "whole.safetensors");
  const std::string whole = read_file(folder / "whole.safetensors");
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const std::string cut = whole.substr(0, whole.size() * seed / count);  // truncated at every length, and mutated
    for (const std::string& bytes : {cut, test::mutate(whole, seed)}) {
      test::write_file(folder / "mutant.safetensors", bytes);
      try {
        ParameterSet parameters;
        const auto source = open_tensors(folder / "mutant.safetensors");
        read_foreign(*source, bert_encoder(bert, BertKind::bert, *source), true, parameters);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused >= count);  // every truncated one
}

}  // namespace

TEST_CASE("truncated and mutated BERTs become dense encoders or are refused, never crash", "[convert]") {
  read_bert_mutants(100);
}

TEST_CASE("many truncated and mutated BERTs become dense encoders or are refused, never crash", "[convert][slow]") {
  read_bert_mutants(3000);
}

namespace {

// BertModel's hidden states from its own names and layout, in double; and those of the library itself if installed.
constexpr const char* kHiddenStates = R"(
import json, math, sys
import numpy as np
from safetensors.numpy import load_file
folder, library = sys.argv[1], sys.argv[2] == 'library'
config = json.load(open(folder + '/config.json'))
ids, types = np.array([[3, 1, 11, 0, 7]]), np.array([[0, 0, 1, 1, 1]])
ours = np.fromfile(folder + '/states', np.float32).reshape(5, -1)
if library:
    import torch
    from transformers import BertModel
    model, info = BertModel.from_pretrained(folder, output_loading_info=True)
    assert not info['missing_keys'] and not info['unexpected_keys'] and not info['mismatched_keys'], info
    model.eval()
    with torch.no_grad():
        y = model(input_ids=torch.tensor(ids), token_type_ids=torch.tensor(types)).last_hidden_state[0].numpy()
else:
    w = {name: t.astype(np.float64) for name, t in load_file(folder + '/model.safetensors').items()}
    assert config['hidden_act'] == 'gelu' and config['model_type'] == 'bert'
    erf = np.vectorize(math.erf)
    H, N = config['hidden_size'], config['num_attention_heads']
    linear = lambda x, name: x @ w[name + '.weight'].T + w[name + '.bias']
    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + config['layer_norm_eps'])
        return x * w[name + '.weight'] + w[name + '.bias']
    y = w['embeddings.word_embeddings.weight'][ids[0]] + w['embeddings.token_type_embeddings.weight'][types[0]]
    y = norm(y + w['embeddings.position_embeddings.weight'][:5], 'embeddings.LayerNorm')
    split = lambda x: x.reshape(5, N, H // N).transpose(1, 0, 2)
    for i in range(config['num_hidden_layers']):
        name = f'encoder.layer.{i}.'
        q, k, v = (split(linear(y, name + 'attention.self.' + p)) for p in ('query', 'key', 'value'))
        s = q @ k.transpose(0, 2, 1) / math.sqrt(H // N)
        p = np.exp(s - s.max(-1, keepdims=True))
        a = (p / p.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(5, H)
        y = norm(y + linear(a, name + 'attention.output.dense'), name + 'attention.output.LayerNorm')
        h = linear(y, name + 'intermediate.dense')
        h = 0.5 * h * (1 + erf(h / math.sqrt(2)))
        y = norm(y + linear(h, name + 'output.dense'), name + 'output.LayerNorm')
worst = float(np.abs(y - ours).max())
print(f'BERT written for others, hidden states by {"transformers" if library else "numpy"}: {worst:.2e}')
assert worst <= 1e-5, worst
)";

}  // namespace

TEST_CASE("others compute our hidden states from the BERT we write", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = test::small_bert();
  HubBert(bert).write(folder / "hub.safetensors");
  convert_to_dense(*open_tensors(folder / "hub.safetensors"), bert, false, folder / "dense");
  write_bert(folder / "dense", folder / "bert");
  const Tensor states = states_of(folder / "dense", {3, 1, 11, 0, 7}, {0, 0, 1, 1, 1});
  test::write_file(folder / "bert/states",
                   {reinterpret_cast<const char*>(states.data()), static_cast<std::size_t>(states.size()) * 4});
  test::write_file(folder / "check.py", kHiddenStates);
  const auto check = [&](const char* modules, const std::string& how) {
    const auto python = test::python_with(modules);
    if (!python) return test::skip(std::string("no Python with ") + modules);
    const std::string script = (folder / "check.py").string() + " " + (folder / "bert").string() + " " + how;
    CHECK(test::run_python(*python, script) == 0);
  };
  check("numpy, safetensors.numpy", "numpy");
  check("numpy, safetensors, torch, transformers", "library");
}

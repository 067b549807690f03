// RoBERTa, NEZHA, XLNet and T5 as dense encoders: the mapping of every tensor, refused models, and comparison with the
// hidden states that the original library computes.
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"

#include <cstring>
#include <functional>
#include <map>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/numbers.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;

namespace {

// Tensors in memory that act as a checkpoint file.
struct Stored : TensorSource {
  std::map<std::string, Tensor> numbers;
  SourceTensors entries;
  std::string place = "stored";

  void add(const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    numbers[name] = Tensor::from(test::random_floats(count, std::hash<std::string>{}(name)), shape, Purpose::weights);
    entries[name] = {StoredDtype::f32, std::move(shape)};
  }
  float at(const std::string& name, std::int64_t i) const { return numbers.at(name).data()[i]; }

  const SourceTensors& tensors() const override { return entries; }
  const std::string& where() const override { return place; }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override {
    const Tensor& values = numbers.at(std::string(name));
    const auto bytes = static_cast<std::size_t>(values.size()) * sizeof(float);
    std::memcpy(out, values.data(), bytes);
    if (seen) seen(static_cast<const char*>(out), bytes);
  }
};

// H = 8, N = 2, D = 4 (T5: 3), F = 10, V = 12, one layer.
Stored small_xlnet() {
  Stored s;
  s.add("transformer.word_embedding.weight", {12, 8});
  s.add("transformer.mask_emb", {1, 1, 8});
  const std::string layer = "transformer.layer.0.";
  for (const char* name : {"q", "k", "v", "o", "r"}) s.add(layer + "rel_attn." + name, {8, 2, 4});
  for (const char* name : {"r_r_bias", "r_s_bias", "r_w_bias"}) s.add(layer + "rel_attn." + name, {2, 4});
  s.add(layer + "rel_attn.seg_embed", {2, 2, 4});
  for (const char* name : {"rel_attn.layer_norm.weight", "rel_attn.layer_norm.bias", "ff.layer_norm.weight",
                           "ff.layer_norm.bias", "ff.layer_2.bias"}) {
    s.add(layer + name, {8});
  }
  s.add(layer + "ff.layer_1.weight", {10, 8});
  s.add(layer + "ff.layer_1.bias", {10});
  s.add(layer + "ff.layer_2.weight", {8, 10});
  s.add("lm_loss.bias", {12});
  return s;
}
const Json kXlnet = {{"model_type", "xlnet"}, {"vocab_size", 12}, {"d_model", 8},
                     {"n_layer", 1},          {"n_head", 2},      {"d_inner", 10}};

Stored small_t5() {
  Stored s;
  s.add("shared.weight", {12, 8});
  s.add("encoder.embed_tokens.weight", {12, 8});
  s.add("encoder.final_layer_norm.weight", {8});
  const std::string block = "encoder.block.0.layer.";
  for (const char* name : {"q", "k", "v"}) s.add(block + "0.SelfAttention." + name + ".weight", {6, 8});
  s.add(block + "0.SelfAttention.o.weight", {8, 6});
  s.add(block + "0.SelfAttention.relative_attention_bias.weight", {8, 2});
  s.add(block + "0.layer_norm.weight", {8});
  s.add(block + "1.DenseReluDense.wi.weight", {10, 8});
  s.add(block + "1.DenseReluDense.wo.weight", {8, 10});
  s.add(block + "1.layer_norm.weight", {8});
  s.add("decoder.final_layer_norm.weight", {8});
  return s;
}
const Json kT5 = {{"model_type", "t5"}, {"vocab_size", 12}, {"d_model", 8}, {"d_kv", 3},
                  {"num_layers", 1},    {"num_heads", 2},   {"d_ff", 10},   {"relative_attention_num_buckets", 8}};

struct Read {
  mutable ParameterSet parameters;
  ForeignEncoder foreign;
  ConversionReport report;

  Read(const std::string& family, const Json& json, const TensorSource& source)
      : foreign(foreign_encoder(family, json, "config.json", source)),
        report(read_foreign(source, foreign, false, parameters)) {}
  float at(const std::string& name, std::int64_t i) const { return parameters.find(name)->value.data()[i]; }
  bool left_out(const std::string& name, const std::string& why) const {
    for (const auto& one : report.left_out) {
      if (one.name == name) return one.why.find(why) != std::string::npos;
    }
    return false;
  }
};

std::string message_of(const std::string& family, Json json, const Json& changes, const TensorSource& source) {
  json.update(changes);
  try {
    const Read read(family, json, source);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("XLNet's tensors become a dense encoder's, axis by axis", "[convert]") {
  const Stored source = small_xlnet();
  const Read read("xlnet", kXlnet, source);
  const std::string layer = "transformer.layer.0.", own = "bert/encoder/layer_0/";
  for (std::int64_t h = 0; h < 8; ++h) {
    for (std::int64_t a = 0; a < 8; ++a) {  // a: head and its component
      CHECK(read.at(own + "attention/self/query/kernel", h * 8 + a) == source.at(layer + "rel_attn.q", h * 8 + a));
      CHECK(read.at(own + "attention/self/relative_projection", h * 8 + a) ==
            source.at(layer + "rel_attn.r", h * 8 + a));
      CHECK(read.at(own + "attention/output/dense/kernel", a * 8 + h) == source.at(layer + "rel_attn.o", h * 8 + a));
    }
    CHECK(read.at(own + "attention/self/query/bias", h) == source.at(layer + "rel_attn.r_w_bias", h));
    CHECK(read.at(own + "attention/self/relative_position_bias", h) == source.at(layer + "rel_attn.r_r_bias", h));
    CHECK(read.at(own + "attention/self/key/bias", h) == 0.0f);
    CHECK(read.at(own + "output/LayerNorm/gamma", h) == source.at(layer + "ff.layer_norm.weight", h));
  }
  CHECK(read.at(own + "intermediate/dense/kernel", 1 * 10 + 7) == source.at(layer + "ff.layer_1.weight", 7 * 8 + 1));
  CHECK(read.left_out(layer + "rel_attn.seg_embed", "within one segment"));
  CHECK(read.left_out("lm_loss.bias", "head"));
  CHECK(read.foreign.config.relative_clip == 512);
  CHECK_THAT(read.report.notes.at(1), Contains("for more than 513 tokens"));

  CHECK_THAT(message_of("xlnet", kXlnet, {{"bi_data", true}}, source), Contains("bi_data: expected false"));
  CHECK_THAT(message_of("xlnet", kXlnet, {{"ff_activation", "swish"}}, source), Contains("ff_activation"));
  CHECK_THAT(message_of("xlnet", kXlnet, {{"n_head", 4}}, source),
             Contains("transformer.layer.0.rel_attn.k: expected [8, 4, 2], got F32 [8, 2, 4]"));
  CHECK_THAT(message_of("xlnet", kXlnet, {{"model_type", "bert"}}, source), Contains("model_type: expected \"xlnet\""));
  CHECK_THAT(message_of("xlnet", {{"vocab_size", 12}}, Json::object(), source), Contains("no d_model"));
}

TEST_CASE("the tensors of T5's encoder become a dense encoder's, and those of a gated one are refused", "[convert]") {
  const Stored source = small_t5();
  const Read read("t5", kT5, source);
  const std::string block = "encoder.block.0.layer.", own = "bert/encoder/layer_0/";
  for (std::int64_t h = 0; h < 8; ++h) {
    for (std::int64_t a = 0; a < 6; ++a) {
      CHECK(read.at(own + "attention/self/key/kernel", h * 6 + a) ==
            source.at(block + "0.SelfAttention.k.weight", a * 8 + h));
      CHECK(read.at(own + "attention/output/dense/kernel", a * 8 + h) ==
            source.at(block + "0.SelfAttention.o.weight", h * 6 + a));
    }
    CHECK(read.at("bert/encoder/final/LayerNorm/gamma", h) == source.at("encoder.final_layer_norm.weight", h));
    CHECK(read.at(own + "output/LayerNorm/beta", h) == 0.0f);
  }
  CHECK(read.at("bert/encoder/relative_table", 5 * 2 + 1) ==
        source.at(block + "0.SelfAttention.relative_attention_bias.weight", 5 * 2 + 1));
  CHECK(read.left_out("encoder.embed_tokens.weight", "copy of a tied tensor"));
  CHECK(read.left_out("decoder.final_layer_norm.weight", "decoder"));
  Stored alone = small_t5();  // a separately saved encoder has only one table, under the other name
  alone.entries.erase("shared.weight");
  CHECK(Read("t5", kT5, alone).at("bert/embeddings/word_embeddings", 5) == alone.at("encoder.embed_tokens.weight", 5));

  CHECK_THAT(message_of("t5", kT5, {{"feed_forward_proj", "gated-gelu"}}, source),
             Contains("feed_forward_proj: expected relu or gelu, got gated-gelu"));
  CHECK_THAT(message_of("t5", kT5, {{"num_layers", 2}}, source),
             Contains("bert/encoder/layer_1/attention/self/query/kernel [8, 6] absent"));
  CHECK_THAT(message_of("t5", kT5, {{"num_heads", 0}}, source), Contains("num_heads"));
}

TEST_CASE("RoBERTa's positions begin with the third row, and NEZHA has none", "[convert]") {
  const BertConfig bert = test::small_bert();
  Json json = test::small_bert_json();
  for (const std::string family : {"roberta", "nezha"}) {
    CAPTURE(family);
    json["model_type"] = family;
    json["layer_norm_eps"] = 1e-5;
    const test::HubBert hub(bert, family + ".");
    Stored source;
    for (const auto& [name, values] : hub.tensors) {
      source.numbers[name] = values;
      source.entries[name] = {StoredDtype::f32, values.shape()};
    }
    source.add(family + ".embeddings.position_ids", {1, 7});
    const Read read(family, json, source);
    CHECK(read.foreign.config.layer_norm_epsilon == 1e-5);
    CHECK(read.foreign.config.hidden_act == "gelu_erf");
    CHECK(read.parameters.find("bert/pooler/dense/kernel") != nullptr);
    const Parameter* const positions = read.parameters.find("bert/embeddings/position_embeddings");
    if (family == "nezha") {
      CHECK(positions == nullptr);
      CHECK(read.foreign.config.relative_positions == DenseConfig::Method::nezha_index);
      CHECK(read.left_out("nezha.embeddings.position_embeddings.weight", "NEZHA reads none"));
    } else {
      REQUIRE(positions->shape == std::vector<std::int64_t>{5, 8});
      CHECK(positions->value.data()[3] == hub.at("roberta.embeddings.position_embeddings.weight", 2 * 8 + 3));
    }
    CHECK(read.left_out(family + ".embeddings.position_ids", "the numbers 0, 1, 2"));
  }
  const Stored none;
  CHECK_THAT(message_of("nezha", json, {{"use_relative_position", false}}, none),
             Contains("use_relative_position: expected true"));
}

namespace {

// Makes a small model of a family with random weights: config.json, model.safetensors, and hidden states of two texts.
constexpr const char* kMakeForeign = R"(
import sys
import numpy as np
import torch
import transformers as t
model, folder = sys.argv[1:]
torch.manual_seed(7)
bert = dict(vocab_size=30, hidden_size=24, num_hidden_layers=3, num_attention_heads=2, intermediate_size=40,
            type_vocab_size=1, max_position_embeddings=34)
if model == 'bert':
    model = t.BertModel(t.BertConfig(**bert))
elif model == 'electra':
    model = t.ElectraForPreTraining(t.ElectraConfig(embedding_size=24, **bert)).electra
elif model == 'big_bird':
    model = t.BigBirdModel(t.BigBirdConfig(**bert))
elif model == 'roberta':
    model = t.RobertaModel(t.RobertaConfig(**bert, pad_token_id=1, layer_norm_eps=1e-5))
elif model == 'roberta_padding_0':
    model = t.RobertaModel(t.RobertaConfig(**bert, pad_token_id=0))
elif model == 'xlm_roberta':
    model = t.XLMRobertaModel(t.XLMRobertaConfig(**bert))
elif model == 'camembert':
    model = t.CamembertModel(t.CamembertConfig(**bert))
elif model == 'nezha':
    from transformers.models.deprecated.nezha import NezhaConfig, NezhaModel
    model = NezhaModel(NezhaConfig(**bert, max_relative_position=5))
elif model == 'xlnet':
    model = t.XLNetModel(t.XLNetConfig(vocab_size=30, d_model=24, n_layer=3, n_head=2, d_inner=40, mem_len=None))
else:
    model = t.T5EncoderModel(t.T5Config(vocab_size=30, d_model=24, d_kv=7, d_ff=40, num_layers=3, num_heads=2,
                                        relative_attention_num_buckets=8, relative_attention_max_distance=12,
                                        feed_forward_proj='relu'))
model.eval()
with torch.no_grad():
    for name, p in model.named_parameters():
        norm = 'norm' in name.lower() and name.endswith('weight')
        p.copy_(0.3 * torch.randn(p.shape) + (1.0 if norm else 0.0))
    model.save_pretrained(folder)
    states = []
    for ids in ([3, 7, 9, 11, 28, 5, 4, 2, 17, 3, 21, 6, 8, 25, 29, 14, 2], [5, 29, 4, 11, 13]):
        states.append(model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy())
np.concatenate(states).astype(np.float32).tofile(folder + '/states')
)";

}  // namespace

TEST_CASE("dense encoders have the hidden states that the library computes of its own models", "[convert][slow]") {
  register_cpu_backend();
  const std::map<std::string, std::string> others = {{"electra", "bert"},
                                                     {"big_bird", "bert"},
                                                     {"roberta_padding_0", "roberta"},
                                                     {"xlm_roberta", "roberta"},
                                                     {"camembert", "roberta"}};
  std::vector<std::string> models = foreign_families();
  for (const auto& [model, family] : others) models.push_back(model);
  for (const std::string& model : models) {
    CAPTURE(model);
    const std::string family = others.contains(model) ? others.at(model) : model;
    const std::string modules = family == "nezha" ? "torch, safetensors, transformers.models.deprecated.nezha"
                                                  : "torch, safetensors, transformers";
    const auto python = test::python_with(modules);
    if (!python) {
      test::skip("no Python with " + modules);
      continue;
    }
    const test::TemporaryFolder folder;
    test::write_file(folder / "make.py", kMakeForeign);
    REQUIRE(test::run_python(*python, (folder / "make.py").string() + " " + model + " " + folder.path().string()) == 0);
    const auto source = open_tensors(folder.path());
    const Read read(family, read_json_file(folder / "config.json"), *source);
    ParameterSet parameters;
    DenseEncoder encoder(read.foreign.config, parameters);
    for (const auto& parameter : parameters.all()) parameter->value = read.parameters.find(parameter->name)->value;
    EncoderInput input;
    input.token_ids = {3, 7, 9, 11, 28, 5, 4, 2, 17, 3, 21, 6, 8, 25, 29, 14, 2, 5, 29, 4, 11, 13};
    input.segment_ids.assign(input.token_ids.size(), 0);
    input.long_offsets = {0, 17, 22};
    input.global_offsets = {0, 0, 0};
    Tape tape(Recording::off);
    const Tensor states = encoder.forward(tape, input, {}).long_states.value();
    const std::string bytes = read_file(folder / "states");
    REQUIRE(bytes.size() == static_cast<std::size_t>(states.size()) * 4);
    std::vector<float> expected(static_cast<std::size_t>(states.size()));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double off = std::abs(static_cast<double>(expected[i]) - static_cast<double>(states.data()[i]));
      if (!(off <= worst)) worst = off;
      largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    }
    std::printf("%-17s hidden states up to %.1f, worst difference %.2e\n", model.c_str(), largest, worst);
    CHECK(worst <= 1e-5);
    CHECK(largest > 0.5);
  }
}

TEST_CASE("the farthest distance of a foreign model and the names of its activation are kept", "[convert]") {
  const auto config_of = [](const std::string& family, Json json, const Json& changes, const TensorSource& source) {
    json.update(changes);
    return Read(family, json, source).foreign.config;
  };
  CHECK(config_of("xlnet", kXlnet, {{"clamp_len", 37}}, small_xlnet()).relative_clip == 37);
  CHECK(config_of("xlnet", kXlnet, {{"clamp_len", -1}}, small_xlnet()).relative_clip == 512);
  for (const char* name : {"gelu", "gelu_python"}) {
    CHECK(config_of("xlnet", kXlnet, {{"ff_activation", name}}, small_xlnet()).hidden_act == "gelu_erf");
  }
  const test::HubBert hub(test::small_bert(), "nezha.");
  Stored nezha;
  for (const auto& [name, values] : hub.tensors) {
    nezha.numbers[name] = values;
    nezha.entries[name] = {StoredDtype::f32, values.shape()};
  }
  Json json = test::small_bert_json();
  json["model_type"] = "nezha";
  CHECK(config_of("nezha", json, {{"max_relative_position", 23}}, nezha).relative_clip == 23);
}

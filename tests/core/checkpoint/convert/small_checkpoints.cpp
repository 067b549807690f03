#include <fmt/format.h>

#include "tests/core/checkpoint/convert/small_checkpoints.h"

#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/encoder_sizes.h"
#include "tests/support/numbers.h"

namespace etc::test {

EtcConfig small_etc_config() {
  EtcConfig config = with_sizes(etc_config_preset("tiny"),
                                {.vocabulary = 11, .hidden = 8, .layers = 2, .heads = 2, .feed_forward = 12});
  config.relative_vocab_size = 28;
  return config;
}

TfCheckpoint::TfCheckpoint(const EtcConfig& config) {
  const EtcEncoder encoder(config, parameters);
  parameters.initialize(5);
}

void TfCheckpoint::add(const std::function<std::string(const std::string&)>& rename) {
  for (const auto& parameter : parameters.all()) {
    const std::string name = rename ? rename(parameter->name) : parameter->name;
    if (!name.empty()) writer.add(name, parameter->value);
  }
}

convert::BertConfig small_bert() {
  convert::BertConfig config =
      with_sizes(convert::BertConfig(), {.vocabulary = 12, .hidden = 8, .layers = 2, .heads = 2, .feed_forward = 10});
  config.max_position_embeddings = 7;
  config.type_vocab_size = 2;
  return config;
}

Json small_bert_json() {
  const convert::BertConfig config = small_bert();
  return {{"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"num_hidden_layers", config.num_hidden_layers},
          {"num_attention_heads", config.num_attention_heads},
          {"intermediate_size", config.intermediate_size},
          {"max_position_embeddings", config.max_position_embeddings},
          {"type_vocab_size", config.type_vocab_size},
          {"hidden_act", config.hidden_act}};
}

HubBert::HubBert(const convert::BertConfig& c, const std::string& prefix) {
  const std::int64_t H = c.hidden_size, F = c.intermediate_size;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    const std::uint64_t seed = std::hash<std::string>{}(name);
    tensors[name] = Tensor::from(random_floats(count, seed, 0.5f), std::move(shape), Purpose::weights);
  };
  const auto dense = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {H});
    add(name + ".bias", {H});
  };
  add(prefix + "embeddings.word_embeddings.weight", {c.vocab_size, H});
  add(prefix + "embeddings.token_type_embeddings.weight", {c.type_vocab_size, H});
  add(prefix + "embeddings.position_embeddings.weight", {c.max_position_embeddings, H});
  norm(prefix + "embeddings.LayerNorm");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string layer = fmt::format("{}encoder.layer.{}.", prefix, i);
    for (const char* name : {"query", "key", "value"}) dense(layer + "attention.self." + name, H, H);
    dense(layer + "attention.output.dense", H, H);
    norm(layer + "attention.output.LayerNorm");
    dense(layer + "intermediate.dense", F, H);
    dense(layer + "output.dense", H, F);
    norm(layer + "output.LayerNorm");
  }
  dense(prefix + "pooler.dense", H, H);
}

void HubBert::write(const std::filesystem::path& file) const {
  TensorFileWriter writer;
  for (const auto& [name, values] : tensors) writer.add(name, values);
  writer.write(file);
}

}  // namespace etc::test

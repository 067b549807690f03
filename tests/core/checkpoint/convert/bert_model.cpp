#include "tests/core/checkpoint/convert/bert_model.h"
#include "etc_core/nn/etc_config.h"

#include <fmt/format.h>

#include <cmath>

namespace etc::test {

namespace rf = reference::realformer;

EncoderInput etc_input(const BertInput& input, const EtcConfig& config) {
  EncoderInput etc = encoder_input(input, config.local_radius);
  // Label 0 selects the first row of the relative tables, which lifting sets to zero.
  etc.labels.long_relative = config.relative_labels() > 0;
  return etc;
}

namespace {

rf::Matrix matrix(const std::vector<double>& numbers, std::size_t columns) {
  rf::Matrix rows;
  for (std::size_t at = 0; at < numbers.size(); at += columns) {
    rows.emplace_back(numbers.begin() + static_cast<std::ptrdiff_t>(at),
                      numbers.begin() + static_cast<std::ptrdiff_t>(at + columns));
  }
  return rows;
}

double tanh_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double erf_gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

}  // namespace

rf::Matrix reference_bert(const convert::BertConfig& config, const ReadVariable& read,
                          const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& types,
                          bool exact_gelu) {
  const auto hidden = static_cast<std::size_t>(config.hidden_size);
  const auto inner = static_cast<std::size_t>(config.intermediate_size);
  const std::string embeddings = "bert/embeddings/";
  const rf::Matrix words = matrix(read(embeddings + "word_embeddings"), hidden);
  const rf::Matrix type_rows = matrix(read(embeddings + "token_type_embeddings"), hidden);
  const rf::Matrix positions = matrix(read(embeddings + "position_embeddings"), hidden);
  rf::Matrix x;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    x.push_back(words[static_cast<std::size_t>(ids[i])]);
    for (std::size_t j = 0; j < hidden; ++j) {
      x[i][j] += type_rows[static_cast<std::size_t>(types[i])][j] + positions[i][j];
    }
  }
  x = rf::layer_norm(x, read(embeddings + "LayerNorm/gamma"), read(embeddings + "LayerNorm/beta"));

  std::vector<rf::DenseLayer> layers;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string prefix = fmt::format("bert/encoder/layer_{}/", i);
    rf::DenseLayer layer;
    const auto dense = [&](const std::string& name, std::size_t out, rf::Matrix& kernel, std::vector<double>& bias) {
      kernel = matrix(read(prefix + name + "/kernel"), out);
      bias = read(prefix + name + "/bias");
    };
    dense("attention/self/query", hidden, layer.query, layer.query_bias);
    dense("attention/self/key", hidden, layer.key, layer.key_bias);
    dense("attention/self/value", hidden, layer.value, layer.value_bias);
    dense("attention/output/dense", hidden, layer.output, layer.output_bias);
    dense("intermediate/dense", inner, layer.inner, layer.inner_bias);
    dense("output/dense", hidden, layer.outer, layer.outer_bias);
    layer.gamma = read(prefix + "attention/output/LayerNorm/gamma");
    layer.beta = read(prefix + "attention/output/LayerNorm/beta");
    layer.outer_gamma = read(prefix + "output/LayerNorm/gamma");
    layer.outer_beta = read(prefix + "output/LayerNorm/beta");
    layers.push_back(std::move(layer));
  }
  rf::DenseOptions options;
  options.heads = static_cast<std::size_t>(config.num_attention_heads);
  options.residual = config.use_residual_attention;
  options.mean = config.use_running_mean;
  options.activation = exact_gelu ? erf_gelu : tanh_gelu;
  return rf::encode(x, layers, options);
}

}  // namespace etc::test

#include "etc_core/nn/dense_layers.h"

#include <cmath>
#include <numeric>
#include <string>

#include "etc_core/base/log.h"
#include "etc_core/nn/position_tables.h"
#include "etc_core/ops/activation.h"

namespace etc {

namespace {

NormPlacement norm_placement(DenseConfig::Norm norm) {
  switch (norm) {
    case DenseConfig::Norm::pre_ln:
      return NormPlacement::before;
    case DenseConfig::Norm::rezero:
      return NormPlacement::none;
    default:
      return NormPlacement::after;
  }
}

// Rows 0, 1, … belong to positions 0, 1, …; tensor2tensor counts from 2, since its padding id is 1.
FixedTable absolute_sinusoids(const DenseConfig& config) {
  using Rows = DenseConfig::AbsolutePositions;
  const std::int64_t hidden = config.hidden_size, rows = config.max_absolute_position_embeddings;
  if (hidden % 2 != 0) {
    log::warn("absolute_positions: a width of H={} leaves {}", hidden,
              config.absolute_positions == Rows::interleaved ? "a sine without cosine" : "a last column of zeros");
  }
  const SinusoidLayout layout = config.absolute_positions == Rows::interleaved  ? SinusoidLayout::interleaved
                                : config.absolute_positions == Rows::halves_t2t ? SinusoidLayout::halves_t2t
                                                                                : SinusoidLayout::halves_xl;
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), layout == SinusoidLayout::halves_t2t ? 2 : 0);
  return FixedTable(Tensor::from(sinusoids(layout, positions, hidden), {rows, hidden}, Purpose::weights));
}

EmbeddingBlock add_embedding(ParameterSet& parameters, const DenseConfig& config) {
  const Initializer table = config.table_init();
  const std::int64_t hidden = config.hidden_size, width = config.embedding_width();
  const std::string names = "bert/embeddings/";
  EmbeddingBlock embedding;
  embedding.hidden = hidden;
  embedding.tokens = &parameters.add(names + "word_embeddings", {config.vocab_size, width}, table);
  if (width != hidden)
    embedding.projection =
        single(add_dense(parameters, names + "projection", width, hidden, config.kernel_init(width)));
  embedding.segments = &parameters.add(names + "token_type_embeddings", {config.segment_vocab_size, hidden}, table);
  if (config.absolute_positions != DenseConfig::AbsolutePositions::learned) {
    embedding.sinusoids = absolute_sinusoids(config);
  } else if (const std::int64_t rows = config.max_absolute_position_embeddings; rows > 0) {
    embedding.positions = &parameters.add(names + "position_embeddings", {rows, hidden}, table);
  }
  if (config.embedding_layer_norm) {
    embedding.norm = add_layer_norm(parameters, names + "LayerNorm", hidden, config.norm_statistics());
  }
  return embedding;
}

// Initialiser of a query projection [H, A]. T5's scores are not divided by sqrt(D); instead its queries are initialised
// smaller by that factor.
Initializer query_init(const DenseConfig& config) {
  Initializer initial = config.kernel_init(config.hidden_size);
  if (config.relative_positions == PositionConfig::Method::t5) {
    initial.stddev /= std::sqrt(static_cast<float>(config.head_size()));
  }
  return initial;
}

// The bias of the queries (Transformer-XL's u) if all layers share it; else null.
Parameter* add_shared_query_bias(ParameterSet& parameters, const DenseConfig& config) {
  if (!config.shares_xl_biases()) return nullptr;
  return &parameters.add("bert/encoder/relative_content_bias", {config.attention_size()}, kZeros);
}

// query_bias: shared by all layers; null: each layer has its own.
DenseLayer add_layer(ParameterSet& parameters, const DenseConfig& config, std::int64_t i, Parameter* query_bias) {
  const std::int64_t hidden = config.hidden_size, attention = config.attention_size(), inner = config.intermediate_size;
  const std::string layer = "bert/encoder/layer_" + std::to_string(i) + "/";
  const NormPlacement norm_at = norm_placement(config.norm);
  const auto residual = [&](const std::string& sublayer) {
    ResidualPlacement placement;
    placement.norm_at = norm_at;
    if (norm_at != NormPlacement::none) {
      placement.norm = add_layer_norm(parameters, layer + sublayer + "LayerNorm", hidden, config.norm_statistics());
    }
    if (config.scales_branches() && config.rezero_per_branch) {
      placement.alpha = &parameters.add(layer + sublayer + "rezero_alpha", {1}, kZeros);
    }
    return placement;
  };
  DenseLayer made;
  const std::string self = layer + "attention/self/";
  if (query_bias == nullptr) {
    made.attention.projections.push_back(add_dense(parameters, self + "query", hidden, attention, query_init(config)));
  } else {
    made.attention.projections.push_back(
        {&parameters.add(self + "query/kernel", {hidden, attention}, query_init(config)), query_bias});
  }
  for (const char* name : {"key", "value"}) {
    made.attention.projections.push_back(
        add_dense(parameters, self + name, hidden, attention, config.kernel_init(hidden)));
  }
  made.attention.output =
      single(add_dense(parameters, layer + "attention/output/dense", attention, hidden, config.output_init(attention)));
  made.attention_residual = residual("attention/output/");
  made.feed_forward.inner =
      single(add_dense(parameters, layer + "intermediate/dense", hidden, inner, config.kernel_init(hidden)));
  made.feed_forward.outer =
      single(add_dense(parameters, layer + "output/dense", inner, hidden, config.output_init(inner)));
  made.feed_forward.activation = ops::activation_from_name(config.hidden_act);
  made.feed_forward.residual = residual("output/");
  if (config.scales_branches() && !config.rezero_per_branch) {
    made.attention_residual.alpha = &parameters.add(layer + "rezero_alpha", {1}, kZeros);
    made.feed_forward.residual.alpha = made.attention_residual.alpha;
  }
  return made;
}

Positions add_positions(ParameterSet& parameters, const DenseConfig& config, const std::vector<DenseLayer>& layers) {
  std::vector<Parameter*> query_biases;
  for (const DenseLayer& layer : layers) query_biases.push_back(layer.attention.projections.front().bias);
  const PositionSizes sizes{config.num_hidden_layers, config.num_attention_heads,
                            config.head_size(),       config.hidden_size,
                            config.table_init(),      config.kernel_init(config.hidden_size)};
  return {parameters, "bert/encoder/", config, sizes, query_biases};
}

}  // namespace

DenseParameters add_dense_parameters(ParameterSet& parameters, const DenseConfig& config) {
  DenseParameters made;
  made.embedding = add_embedding(parameters, config);
  Parameter* const query_bias = add_shared_query_bias(parameters, config);
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    made.layers.push_back(add_layer(parameters, config, i, query_bias));
  }
  made.positions = add_positions(parameters, config, made.layers);
  if (config.has_final_norm()) {
    made.final_norm =
        add_layer_norm(parameters, "bert/encoder/final/LayerNorm", config.hidden_size, config.norm_statistics());
  }
  return made;
}

}  // namespace etc

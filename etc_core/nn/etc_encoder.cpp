// The steps of one forward pass: checks, tiles and running scores, embedding stage, layers. The computation of a layer
// is in etc_layers.cpp.
#include "etc_core/nn/etc_encoder.h"

#include <utility>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/blocks/encoder_pass.h"
#include "etc_core/nn/blocks/layer_stack.h"
#include "etc_core/nn/etc_layers.h"
#include "etc_core/nn/input_checks.h"
#include "etc_core/nn/packed_cache.h"
#include "sparse/etc_attention.h"

namespace etc {

namespace {

using sparse::AttentionType;

const std::vector<AttentionType> kTypes(sparse::kEtcTypes.begin(), sparse::kEtcTypes.end());

}  // namespace

struct EtcEncoder::Impl {
  Impl(const EtcConfig& model, ParameterSet& parameters)
      : config((model.validate(), model)), embedding_stage(config, parameters) {
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layers.emplace_back(config, i, parameters);
  }

  // Tiles, and with residual attention the running scores, of one forward pass.
  std::shared_ptr<AttentionBatch> attention_batch(const EncoderInput& input, const std::vector<std::int64_t>& ordinals,
                                                  const PassSetting& setting) const;

  const EtcConfig config;
  EtcEmbedding embedding_stage;
  std::vector<EtcLayer> layers;
  PackedCache cache;
  bool period_explained = false;
};

std::shared_ptr<AttentionBatch> EtcEncoder::Impl::attention_batch(const EncoderInput& input,
                                                                  const std::vector<std::int64_t>& ordinals,
                                                                  const PassSetting& setting) const {
  auto batch = std::make_shared<AttentionBatch>();
  sparse::LabelTensors labels;
  labels.examples = input.batch();
  labels.long_offsets = input.long_offsets.data();
  labels.global_offsets = input.global_offsets.data();
  labels.radius = config.local_radius;
  labels.l2l = input.labels.l2l.data();
  labels.l2g = input.labels.l2g.data();
  labels.g2g = input.labels.g2g.data();
  labels.g2l = input.labels.g2l.data();
  labels.relative_labels = input.labels.long_relative ? config.relative_labels() : 0;
  batch->operators.push_back({sparse::build_long_tiles(labels), input.labels.long_relative});
  labels.relative_labels = input.labels.global_relative ? config.relative_labels() : 0;
  batch->operators.push_back({sparse::build_global_tiles(labels), input.labels.global_relative});
  prepare_attention(*batch, setting, kTypes, ordinals);
  return batch;
}

std::unique_ptr<Encoder> EtcConfig::make_encoder(ParameterSet& parameters) const {
  return std::make_unique<EtcEncoder>(*this, parameters);
}

EtcEncoder::EtcEncoder(const EtcConfig& config, ParameterSet& parameters)
    : impl_(std::make_unique<Impl>(config, parameters)) {}
EtcEncoder::~EtcEncoder() = default;

const EtcConfig& EtcEncoder::config() const {
  return impl_->config;
}

EncoderStates EtcEncoder::forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) {
  check_input(input, impl_->config);
  const std::vector<std::int64_t> ordinals = ordinals_of(input);
  const PassSetting setting{impl_->config, impl_->embedding_stage.device(), tape.recording(),
                            tape.recording() ? InferenceTypes(options.compute) : impl_->cache.types(), options};
  EtcContext context;
  context.rows[0] = ragged_rows(input.long_offsets, ordinals);
  context.rows[1] = ragged_rows(input.global_offsets, ordinals);
  context.attention = impl_->attention_batch(input, ordinals, setting);
  prepare_context(context, setting, impl_->cache);

  const PoolUse pooled(tape);
  LayerStack stack;
  stack.layers = impl_->config.num_hidden_layers;
  stack.period = tape.recording() ? checkpoint_period(impl_->config, impl_->period_explained) : 0;
  stack.layer = [impl = impl_.get(), context](Tape& on, std::int64_t i, LayerStates x, Pass pass) -> LayerStates {
    const States y =
        impl->layers[static_cast<std::size_t>(i)].forward(on, {std::move(x[0]), std::move(x[1])}, context, pass);
    return {y.of_long, y.of_global};
  };
  States embedded = impl_->embedding_stage.forward(tape, input, context);
  LayerStates states = {std::move(embedded.of_long), std::move(embedded.of_global)};  // [T, H], [U, H]
  states = run_watched(tape, std::move(states), std::move(stack), options.watch, *context.attention);
  return {states[0], states[1]};
}

void EtcEncoder::release(InferenceTypes types) {
  std::vector<std::vector<Dense>> layers;
  for (const EtcLayer& layer : impl_->layers) layers.push_back(layer.dense_layers());
  impl_->cache.release_kernels(layers, types);
}

}  // namespace etc

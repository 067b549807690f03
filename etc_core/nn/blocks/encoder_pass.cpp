#include "etc_core/nn/blocks/encoder_pass.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"

namespace etc {

namespace {

// On a CPU without bf16 instructions the fp32 kernels are faster.
ComputeType attention_compute(const PassSetting& setting) {
  if (setting.types.compute == ComputeType::fp32) return ComputeType::fp32;
  const bool has_bf16 = setting.device != Device::cpu || cpu_has_avx512(ComputeType::bf16);
  return has_bf16 ? ComputeType::bf16 : ComputeType::fp32;
}

// The running scores of one attention type as external scores (encoder.h), copied: the next layer adds to them.
// Undefined for a type that carries no scores.
Tensor exported(const sparse::ScoreState& scores, const sparse::TypeTiles& tiles, std::int64_t heads) {
  if (!scores.carries(tiles.type)) return {};
  const std::int64_t size = sparse::external_score_elements(tiles, heads);
  Tensor external = Tensor::empty({size}, Purpose::scratch);  // flat: examples differ in L and G
  scores.export_running(tiles.type, external.data());
  if (!tiles.window) return external;
  return external.reshaped({heads, tiles.queries(), tiles.width()});  // [N, T, W]
}

}  // namespace

std::vector<std::int64_t> ordinals_of(const EncoderInput& input) {
  if (!input.sample_ordinals.empty()) return input.sample_ordinals;
  std::vector<std::int64_t> ordinals(static_cast<std::size_t>(input.batch()));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  return ordinals;
}

std::shared_ptr<const RaggedRows> ragged_rows(const std::vector<std::int64_t>& offsets,
                                              const std::vector<std::int64_t>& ordinals) {
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets = offsets;
  rows->sample_ordinals.assign(ordinals.begin(), ordinals.end());
  return rows;
}

PoolUse::PoolUse(Tape& tape) : tape_(tape) {
  if (!tape.recording()) tape_.use_pool(&pool_);
}

PoolUse::~PoolUse() {
  tape_.use_pool(nullptr);
}

void prepare_attention(AttentionBatch& batch, const PassSetting& setting,
                       const std::vector<sparse::AttentionType>& types, const std::vector<std::int64_t>& ordinals) {
  const EncoderConfig& config = setting.config;
  batch.heads = config.num_attention_heads;
  batch.head_size = config.head_size();
  batch.dropout_rate = setting.options.training ? static_cast<float>(config.attention_probs_dropout_prob) : 0;
  batch.seed = setting.options.seed;
  batch.compute = attention_compute(setting);
  batch.sample_ordinals = ordinals;
  batch.watch = setting.options.attention_watch;
  if (!config.carries_scores()) return;
  sparse::ScoreOptions scores;
  scores.layers = setting.layers > 0 ? setting.layers : config.num_hidden_layers;
  scores.heads = config.num_attention_heads;
  const std::vector<std::string>& carrying = config.residual_attention_types;
  for (const sparse::AttentionType& type : types) {
    scores.types.push_back(std::find(carrying.begin(), carrying.end(), type.name) != carrying.end());
  }
  scores.running_mean = config.use_running_mean;
  scores.training = setting.recording;
  scores.device = setting.device;
  // Statistics read the scores in the format of the training kernels.
  if (!setting.recording && !setting.options.attention_watch) scores.type = setting.types.scores;
  scores.keep_last = setting.options.watch || setting.options.attention_watch;
  batch.scores.emplace(scores, batch.scored_operators());
}

void prepare_context(ForwardContext& context, const PassSetting& setting, PackedCache& cache) {
  if (setting.options.training && !setting.recording) fail("encoder", "training needs a tape that records");
  if (setting.recording) cache.begin_training();
  context.hidden_dropout = setting.options.training ? static_cast<float>(setting.config.hidden_dropout_prob) : 0;
  context.seed = setting.options.seed;
  context.packed = setting.recording ? nullptr : &cache;
  context.compute = setting.types.compute;
}

std::int64_t checkpoint_period(const EncoderConfig& config, bool& explained) {
  const std::int64_t period = config.grad_checkpointing_period;
  if (!config.carries_scores() || period <= 1) return period;
  if (!explained) {
    log::info("encoder: with residual attention grad_checkpointing_period={} acts as 1", period);
    explained = true;
  }
  return 1;
}

void report_layer(const LayerWatch& watch, std::int64_t layer, const LayerStates& states,
                  const AttentionBatch& attention) {
  if (!watch) return;
  ExternalScores external;
  if (attention.scores && layer >= 0) {
    for (const OperatorBatch& part : attention.operators) {
      for (const sparse::TypeTiles& tiles : part.tiles.types) {
        external.add(tiles.type.name, exported(*attention.scores, tiles, attention.heads));
      }
    }
  }
  const auto host = [&](std::size_t i) { return i < states.size() ? states[i].value().to(Device::cpu) : Tensor(); };
  watch(layer, host(0), host(1), external);
}

LayerStates run_watched(Tape& tape, LayerStates x, LayerStack stack, const LayerWatch& watch,
                        const AttentionBatch& attention) {
  stack.after = [&](std::int64_t layer, const LayerStates& states) { report_layer(watch, layer, states, attention); };
  report_layer(watch, -1, x, attention);
  return run_layers(tape, std::move(x), stack);
}

Var run_watched(Tape& tape, Var x, LayerStack stack, const LayerWatch& watch, const AttentionBatch& attention,
                const LayerNormParameters& final_norm) {
  LayerStates states;
  states.push_back(std::move(x));
  // Anything after the first is not a hidden state.
  stack.after = [&](std::int64_t layer, const LayerStates& after) {
    report_layer(watch, layer, {after[0]}, attention);
  };
  report_layer(watch, -1, states, attention);
  const Var y = run_layers(tape, std::move(states), stack)[0];
  return final_norm.gamma == nullptr ? y : layer_norm(tape, y, final_norm);
}

}  // namespace etc

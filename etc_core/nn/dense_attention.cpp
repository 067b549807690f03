#include "etc_core/nn/dense_attention.h"

#include <cmath>
#include <string>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/carried_heads.h"
#include "etc_core/nn/input_checks.h"
#include "sparse/patterns/bigbird.h"
#include "sparse/patterns/causal.h"
#include "sparse/performer_projection.h"
#include "sparse/self_attention.h"

namespace etc {

namespace {

using Attention = DenseConfig::Attention;

sparse::BigBirdPattern bigbird_of(const DenseConfig& config) {
  sparse::BigBirdPattern pattern;
  pattern.block_size = config.bigbird_block_size;
  pattern.random_blocks = config.bigbird_random_blocks;
  pattern.per_layer = config.bigbird_per_layer;
  pattern.heads = config.bigbird_per_head ? config.num_attention_heads : 1;
  pattern.seed = static_cast<std::uint64_t>(config.attention_seed);
  return pattern;
}

// Rejects keys of another kind of attention, which would have no effect.
void check_unused_keys(const DenseConfig& config) {
  const DenseConfig usual;
  const auto unused = [](const char* key, const char* kind) {
    fail_usage("config", "{}: expected attention {} beside it", key, kind);
  };
  if (config.attention != Attention::bigbird) {
    if (config.bigbird_block_size != usual.bigbird_block_size) unused("bigbird_block_size", "bigbird");
    if (config.bigbird_random_blocks != usual.bigbird_random_blocks) unused("bigbird_random_blocks", "bigbird");
    if (config.bigbird_per_layer) unused("bigbird_per_layer", "bigbird");
  }
  if (config.attention != Attention::performer) {
    if (config.performer_features != usual.performer_features) unused("performer_features", "performer");
    if (config.performer_norms != usual.performer_norms) unused("performer_norms", "performer");
    if (config.performer_redraw != 0) unused("performer_redraw", "performer");
  }
  if (config.attention_seed != 0 && config.attention != Attention::bigbird &&
      config.attention != Attention::performer) {
    unused("attention_seed", "bigbird or performer");
  }
}

void check_causal(const DenseConfig& config) {
  if (config.causal && config.attention == Attention::bigbird) {
    fail_usage("config", "causal: expected false with attention bigbird, whose first and last block see everything");
  }
  if (config.memory_length == 0) return;
  if (!config.causal) {
    fail_usage("config", "memory_length: expected causal beside it, got {} in a model of both directions",
               config.memory_length);
  }
  if (config.attention == Attention::performer) {
    fail_usage("config", "memory_length: expected 0 with attention performer, got {}", config.memory_length);
  }
  if (config.max_absolute_position_embeddings > 0) {
    fail_usage("config",
               "memory_length: expected max_absolute_position_embeddings 0 beside it, since every segment would have "
               "the same positions (take relative_positions), got {}",
               config.max_absolute_position_embeddings);
  }
}

}  // namespace

void check_attention(const DenseConfig& config) {
  const bool windowed = config.local_radius > 0;
  if (config.attention == Attention::window && !windowed) {
    fail_usage("config", "attention: window: expected a local_radius of at least 1, got 0");
  }
  if (config.attention != Attention::window && config.attention != Attention::by_radius && windowed) {
    fail_usage("config", "local_radius: expected 0 with this kind of attention, got {} (or choose window)",
               config.local_radius);
  }
  check_unused_keys(config);
  check_causal(config);
  if (config.bigbird_per_layer && config.carries_scores()) {
    fail_usage("config",
               "bigbird_per_layer: expected false with use_residual_attention, got true: scores are carried pair by "
               "pair, so all layers must have the same blocks");
  }
  if (config.attention != Attention::performer) return;
  if (config.has_relative_positions()) {
    fail_usage("config",
               "relative_positions: expected none with attention performer, got {}: linear attention has no pairs to "
               "give a distance",
               config.to_json().at("relative_positions").get<std::string>());
  }
  if (config.attention_probs_dropout_prob > 0) {
    fail_usage("config",
               "attention_probs_dropout_prob: expected 0 with attention performer, which has no probabilities, got {}",
               config.attention_probs_dropout_prob);
  }
}

const sparse::AttentionOperator& DenseAttention::op() const {
  return config_.attention == Attention::bigbird ? sparse::kBigBirdAttention : sparse::kSelfAttention;
}

OperatorBatch DenseAttention::causal_tiles(const EncoderInput& input, const SegmentMemory* memory) const {
  sparse::CausalSequence sequence;
  sequence.examples = input.batch();
  sequence.offsets = input.long_offsets.data();
  if (memory != nullptr) sequence.key_offsets = memory->key_offsets().data();
  sequence.reach = config_.local_radius > 0 ? config_.local_radius : sparse::CausalSequence::kAll;
  return {sparse::build_causal_tiles(sequence), false};
}

OperatorBatch DenseAttention::tiles(const EncoderInput& input, std::int64_t layer, const SegmentMemory* memory) const {
  if (config_.causal) return causal_tiles(input, memory);
  const std::int64_t given = input.labels.l2l.size();
  if (config_.attention == Attention::bigbird) {
    sparse::BigBirdBatch batch;
    batch.examples = input.batch();
    batch.offsets = input.long_offsets.data();
    batch.layer = layer;
    return {sparse::build_bigbird_tiles(bigbird_of(config_), batch), false};
  }
  sparse::SequenceLabels labels;
  labels.examples = input.batch();
  labels.offsets = input.long_offsets.data();
  labels.radius = config_.local_radius > 0 ? config_.local_radius : sparse::SequenceLabels::kFull;
  const std::int64_t window = 2 * sparse::self_radius(labels) + 1;
  if (given != 0 && given != input.long_tokens() * window) {
    fail(kEncoderInput, "labels.l2l: expected {} labels, got {}", input.long_tokens() * window, given);
  }
  labels.labels = given != 0 ? input.labels.l2l.data() : nullptr;
  const bool select = given != 0 && positions_.label_rows() > 0;  // labels select table rows; else they only mask
  labels.relative_labels = select ? positions_.label_rows() : 0;
  return {sparse::build_self_tiles(labels), select};
}

void DenseAttention::draw_projections(std::int64_t redraw) {
  if (drawn_ == redraw) return;
  projections_.clear();  // closures keep the projections of their pass
  for (std::int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
    // Carried scores are those of the heads of all layers up to this one, joined.
    const std::int64_t size = config_.head_size() * (config_.carries_scores() ? layer + 1 : 1);
    projections_.push_back(Tensor::empty({config_.performer_features, size}, Purpose::weights));
    sparse::draw_projection({config_.performer_features, size, config_.performer_norms,
                             static_cast<std::uint64_t>(config_.attention_seed), layer, redraw},
                            projections_.back().data());
  }
  drawn_ = redraw;
}

DenseAttention::Shared DenseAttention::share(const EncoderInput& input, const std::vector<std::int64_t>& ordinals,
                                             const PassSetting& setting) {
  const std::int64_t given = input.labels.l2l.size();
  const char* const own_pattern =
      config_.attention == Attention::bigbird     ? "attention bigbird, whose blocks say who sees whom"
      : config_.attention == Attention::performer ? "attention performer, which has no pairs"
      : config_.causal                            ? "causal, which says who sees whom"
                                                  : nullptr;
  if (own_pattern != nullptr && given != 0)
    fail(kEncoderInput, "labels.l2l: expected none with {}, got {}", own_pattern, given);
  check_memory(input, config_);
  const std::vector<sparse::AttentionType> types(std::begin(op().types), std::end(op().types));
  Shared shared;
  shared.memory = SegmentMemory::of(input, config_, setting.device);
  const auto batch_of = [&](std::int64_t layer) {
    auto batch = std::make_shared<AttentionBatch>();
    if (layer >= 0) {
      batch->operators.push_back(tiles(input, layer, shared.memory.get()));
      positions_.prepare(*batch, 0);
    }
    prepare_attention(*batch, setting, types, ordinals);
    return batch;
  };
  if (config_.attention == Attention::performer) {
    const std::int64_t step = setting.options.training ? setting.options.step : 0;
    draw_projections(sparse::redraws(step, config_.performer_redraw));
    for (const Tensor& projection : projections_) shared.projections.push_back(projection.to(setting.device));
    shared.pairs = batch_of(-1);
    shared.linear = std::make_shared<const PerformerBatch>(PerformerBatch{
        input.long_offsets, input.long_offsets, config_.num_attention_heads, config_.head_size(), config_.causal});
    return shared;
  }
  shared.pairs = batch_of(0);
  for (std::int64_t layer = 0; config_.bigbird_per_layer && layer < config_.num_hidden_layers; ++layer) {
    shared.of_layers.push_back(layer == 0 ? shared.pairs : batch_of(layer));
  }
  return shared;
}

const std::shared_ptr<AttentionBatch>& DenseAttention::pairs_of(const Shared& shared, std::int64_t layer) const {
  return shared.of_layers.empty() ? shared.pairs : shared.of_layers[static_cast<std::size_t>(layer)];
}

ElementType DenseAttention::row_type(const Shared& shared, std::int64_t layer, const RelativeParameters& tables,
                                     Device device) const {
  // Linear attention uses fp32, and so do keys of memory joined to those of the tokens.
  if (shared.linear != nullptr || shared.memory != nullptr) return ElementType::fp32;
  return etc::row_type(*pairs_of(shared, layer), op(), tables, device);
}

Var DenseAttention::linear(Tape& tape, const Shared& shared, std::int64_t layer, const AttentionInputs& inputs) const {
  const KeyColumns& own = inputs.keys[0];
  return performer(tape, shared.linear, shared.projections[static_cast<std::size_t>(layer)], {inputs.q, own.k, own.v});
}

Var DenseAttention::linear(Tape& tape, const Shared& shared, std::int64_t layer, const AttentionInputs& inputs,
                           Carried& carried) const {
  const HeadSizes sizes{config_.num_attention_heads, config_.head_size()};
  const std::int64_t parts = layer + 1;
  const KeyColumns& own = inputs.keys[0];
  carried.q = join_heads(tape, carried.q, head_rows(tape, inputs.q, sizes), sizes);
  carried.k = join_heads(tape, carried.k, head_rows(tape, own.k, sizes), sizes);
  const Var values = pad_heads(tape, head_rows(tape, own.v, sizes), parts, sizes);
  auto joined = std::make_shared<PerformerBatch>(*shared.linear);
  joined->head_size = parts * sizes.head_size;
  // The scale is that of one layer's scores, divided for their mean.
  const double scale = 1.0 / std::sqrt(static_cast<double>(sizes.head_size));
  joined->scale = static_cast<float>(config_.use_running_mean ? scale / static_cast<double>(parts) : scale);
  const Var attended = performer(tape, joined, shared.projections[static_cast<std::size_t>(layer)],
                                 {{carried.q, 0}, {carried.k, 0}, {values, 0}});
  return first_of_heads(tape, attended, parts, sizes);
}

Var DenseAttention::attend(Tape& tape, const Shared& shared, std::int64_t layer, Pass pass,
                           const AttentionInputs& inputs, Carried& carried) const {
  if (shared.linear != nullptr) {
    return config_.carries_scores() ? linear(tape, shared, layer, inputs, carried)
                                    : linear(tape, shared, layer, inputs);
  }
  return attention(tape, op(), pairs_of(shared, layer), layer, pass, inputs);
}

}  // namespace etc

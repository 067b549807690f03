// The order of things in one forward pass: checks, tiles and running scores, embedding stage, layers in checkpointed
// stretches. What a layer computes is in etc_layers.cpp.
#include "etc_core/nn/etc_encoder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/large_blocks.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/etc_layers.h"
#include "etc_core/nn/input_checks.h"
#include "etc_core/nn/packed_cache.h"
#include "etc_core/ops/register.h"
#include "sparse/register_cpu.h"

namespace etc {

namespace {

using sparse::AttentionType;

// offsets [B+1], ordinals [B]: shared, because the closures of the tape outlive the call.
std::shared_ptr<const RaggedRows> ragged_rows(const std::vector<std::int64_t>& offsets,
                                              const std::vector<std::int64_t>& ordinals) {
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets = offsets;
  rows->sample_ordinals.assign(ordinals.begin(), ordinals.end());
  return rows;
}

// Half-open ranges of layers (etc-core 7): all but the last are recomputed in backward.
std::vector<std::pair<std::int64_t, std::int64_t>> chunks(std::int64_t layers, std::int64_t period) {
  const std::int64_t stride = period <= 0 ? layers : std::min(period, layers);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  std::int64_t first = 0;
  for (std::int64_t end = layers % stride == 0 ? stride : layers % stride; end <= layers; end += stride) {
    ranges.emplace_back(first, end);
    first = end;
  }
  return ranges;
}

// The running scores of one attention type as external scores (etc_encoder.h), copied: the next layer adds to them.
// Undefined for a type that carries none.
Tensor exported(const sparse::ScoreState& scores, const sparse::TypeTiles& tiles, std::int64_t heads) {
  if (!scores.carries(tiles.type)) return {};
  const std::int64_t size = sparse::external_score_elements(tiles, heads);
  Tensor external = Tensor::empty({size}, Purpose::scratch);  // flat: examples differ in L and G
  scores.export_running(tiles.type, external.data());
  if (!tiles.window) return external;
  return external.reshaped({heads, tiles.queries(), 2 * tiles.radius + 1});  // [N, T, W]
}

// The tape draws from the pool for as long as this lives.
class PoolUse {
 public:
  PoolUse(Tape& tape, TensorPool* pool) : tape_(tape) { tape_.use_pool(pool); }
  ~PoolUse() { tape_.use_pool(nullptr); }
  PoolUse(const PoolUse&) = delete;
  PoolUse& operator=(const PoolUse&) = delete;

 private:
  Tape& tape_;
};

}  // namespace

struct EtcEncoder::Impl {
  Impl(const EtcConfig& model, ParameterSet& parameters)
      : config((model.validate(), model)), embedding_stage(config, parameters) {
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) layers.emplace_back(config, i, parameters);
  }

  std::shared_ptr<AttentionBatch> attention_batch(const EncoderInput& input, const std::vector<std::int64_t>& ordinals,
                                                  bool recording, const ForwardOptions& options) const;
  Device device() const { return embedding_stage.device(); }
  ComputeType attention_compute(ComputeType dense, bool recording) const;
  bool carries_scores() const { return config.use_residual_attention && !config.residual_attention_types.empty(); }
  std::int64_t checkpoint_period();
  void report(const ForwardOptions& options, std::int64_t layer, const States& states,
              const AttentionBatch& attention) const;

  const EtcConfig config;
  EtcEmbedding embedding_stage;
  std::vector<EtcLayer> layers;
  PackedCache cache;
  bool released = false;
  bool period_explained = false;
};

// Tiles, and with residual attention the running scores, of one forward pass.
std::shared_ptr<AttentionBatch> EtcEncoder::Impl::attention_batch(const EncoderInput& input,
                                                                  const std::vector<std::int64_t>& ordinals,
                                                                  bool recording, const ForwardOptions& options) const {
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
  batch->heads = config.num_attention_heads;
  batch->head_size = config.head_size();
  batch->dropout_rate = options.training ? static_cast<float>(config.attention_probs_dropout_prob) : 0;
  batch->seed = options.seed;
  batch->compute = attention_compute(recording ? options.compute : cache.compute(), recording);
  batch->sample_ordinals = ordinals;
  if (carries_scores()) {
    sparse::ScoreOptions scores;
    scores.layers = config.num_hidden_layers;
    scores.heads = config.num_attention_heads;
    for (const AttentionType& type : sparse::kEtcTypes) {
      const auto& types = config.residual_attention_types;
      scores.types.push_back(std::find(types.begin(), types.end(), type.name) != types.end());
    }
    scores.running_mean = config.use_running_mean;
    scores.training = recording;
    scores.device = device();
    scores.keep_last = static_cast<bool>(options.watch);
    batch->scores.emplace(scores, batch->scored_operators());
  }
  return batch;
}

// The CPU's kernels have no backward in bf16, and without matrix tiles those of fp32 are faster than anything bf16.
ComputeType EtcEncoder::Impl::attention_compute(ComputeType dense, bool recording) const {
  if (dense == ComputeType::fp32) return ComputeType::fp32;
  const bool has_bf16 = device() != Device::cpu || (!recording && cpu_has_amx(ComputeType::bf16));
  return has_bf16 ? ComputeType::bf16 : ComputeType::fp32;
}

// With running scores only single layers can be recomputed: C of a longer stretch's first layer would need the outputs
// that need C.
std::int64_t EtcEncoder::Impl::checkpoint_period() {
  const std::int64_t period = config.grad_checkpointing_period;
  if (!carries_scores() || period <= 1) return period;
  if (!period_explained) {
    log::info("encoder: with residual attention grad_checkpointing_period={} acts as 1", period);
    period_explained = true;
  }
  return 1;
}

void EtcEncoder::Impl::report(const ForwardOptions& options, std::int64_t layer, const States& states,
                              const AttentionBatch& attention) const {
  if (!options.watch) return;
  ExternalScores external;
  if (attention.scores && layer >= 0) {
    const sparse::ScoreState& scores = *attention.scores;
    const std::int64_t heads = config.num_attention_heads;
    const auto& of_long = attention.of(sparse::kLongAttention).tiles.types;
    const auto& of_global = attention.of(sparse::kGlobalAttention).tiles.types;
    external.l2l = exported(scores, of_long[0], heads);
    external.l2g = exported(scores, of_long[1], heads);
    external.g2g = exported(scores, of_global[0], heads);
    external.g2l = exported(scores, of_global[1], heads);
  }
  options.watch(layer, states.of_long.value().to(Device::cpu), states.of_global.value().to(Device::cpu), external);
}

EtcEncoder::EtcEncoder(const EtcConfig& config, ParameterSet& parameters)
    : impl_(std::make_unique<Impl>(config, parameters)) {}
EtcEncoder::~EtcEncoder() = default;

const EtcConfig& EtcEncoder::config() const {
  return impl_->config;
}

EncoderStates EtcEncoder::forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) {
  check_input(input, impl_->config);
  if (options.training && !tape.recording()) fail("encoder", "training needs a tape that records");
  if (tape.recording()) {
    if (impl_->released) fail("encoder", "the kernels were released: load the parameters into a new encoder to train");
    impl_->cache.clear();  // training changes the kernels: packed ones would only take memory
  }
  std::vector<std::int64_t> ordinals = input.sample_ordinals;
  if (ordinals.empty()) {
    ordinals.resize(static_cast<std::size_t>(input.batch()));
    std::iota(ordinals.begin(), ordinals.end(), 0);
  }
  ForwardContext context;
  context.long_rows = ragged_rows(input.long_offsets, ordinals);
  context.global_rows = ragged_rows(input.global_offsets, ordinals);
  context.attention = impl_->attention_batch(input, ordinals, tape.recording(), options);
  context.hidden_dropout = options.training ? static_cast<float>(impl_->config.hidden_dropout_prob) : 0;
  context.seed = options.seed;
  context.packed = tape.recording() ? nullptr : &impl_->cache;
  context.compute = options.compute;

  // Inference: the memory of a layer's results serves the next layer, without asking the heap.
  TensorPool pool;
  const PoolUse pooled(tape, tape.recording() ? nullptr : &pool);
  States states = impl_->embedding_stage.forward(tape, input, context);  // [T, H], [U, H], as after every layer
  impl_->report(options, -1, states, *context.attention);
  const auto run = [impl = impl_.get(), context](Tape& on, States x, Pass pass, std::int64_t first, std::int64_t end,
                                                 const ForwardOptions* watched) {
    for (std::int64_t i = first; i < end; ++i) {
      x = impl->layers[static_cast<std::size_t>(i)].forward(on, std::move(x), context, pass);
      if (watched != nullptr) impl->report(*watched, i, x, *context.attention);
    }
    return x;
  };
  const auto ranges = chunks(impl_->config.num_hidden_layers, tape.recording() ? impl_->checkpoint_period() : 0);
  for (const auto& [first, end] : ranges) {
    if (end == impl_->config.num_hidden_layers) {
      states = run(tape, std::move(states), Pass::forward, first, end, &options);
      break;
    }
    // The closure outlives this call, the options do not: nothing watches a recomputation.
    const std::vector<Var> outputs = checkpoint(
        tape, {states.of_long, states.of_global},
        [run, first = first, end = end, watched = &options](Tape& on, const std::vector<Var>& inputs, Pass pass) {
          // inputs: long [T, H] and global [U, H] before layer `first`
          const States x = run(on, {inputs[0], inputs[1]}, pass, first, end, pass == Pass::forward ? watched : nullptr);
          return std::vector<Var>{x.of_long, x.of_global};
        });
    states = {outputs[0], outputs[1]};  // [T, H], [U, H] after layer `end` - 1
  }
  return {states.of_long, states.of_global};
}

void EtcEncoder::release_kernels(ComputeType compute) {
  impl_->cache.set_compute(compute);
  // Layer by layer, so that at no time all kernels are there twice. Kernels are shared within a layer only.
  for (const EtcLayer& layer : impl_->layers) {
    const std::vector<Dense> dense_layers = layer.dense_layers();
    for (const Dense& dense : dense_layers) impl_->cache.packed(dense);
    for (const Dense& dense : dense_layers) {
      for (const Dense::Part& part : dense.parts) part.kernel->value = Tensor();
    }
  }
  large_blocks::release_kept();  // for int8 the sources were three quarters of the program's memory
  impl_->released = true;
}

void register_cpu_backend() {
  ops::register_cpu_ops();
  sparse::register_cpu_kernels();
}

}  // namespace etc

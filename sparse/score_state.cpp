#include "sparse/score_state.h"

#include "etc_core/base/error.h"

namespace etc::sparse {

namespace {

template <typename T>
std::int64_t bytes_of(const Buffer<T>& buffer) {
  return buffer.size() * static_cast<std::int64_t>(sizeof(T));
}

// Host access to a buffer's numbers; copies the buffer only if it is on another device.
template <typename T>
class OnHost {
 public:
  explicit OnHost(const Buffer<T>& buffer) : data_(buffer.data()) {
    if (buffer.device() == Device::cpu) return;
    copy_ = Buffer<T>(buffer.size(), Purpose::scratch);
    copy_bytes(Device::cpu, copy_.data(), buffer.device(), buffer.data(), bytes_of(buffer));
    data_ = copy_.data();
  }
  const T* data() const { return data_; }

 private:
  Buffer<T> copy_;
  const T* data_;
};

}  // namespace

ScoreState::ScoreState(const ScoreOptions& options, const ScoredOperators& operators) : options_(options) {
  if (options.layers < 1 || options.heads < 1) {
    fail("scores", "expected at least 1 layer and 1 head, got {} layers and {} heads", options.layers, options.heads);
  }
  const bool half = options.type == ScoreType::fp16;
  if (half && (options.training || options.device != Device::cpu)) {
    fail("scores", "fp16: offered for inference on the CPU (backward needs the exact sums of int32)");
  }
  // The buffers are uninitialised: forward of layer 0 writes every element before it is read.
  for (const AttentionTiles* tiles : operators) {
    Held& held = operators_.emplace_back();
    held.op = tiles->op;
    for (int t = 0; t < kKeySets; ++t) {
      Carried& own = held.types[t];
      own.tiles = &tiles->types[t];
      // The options are indexed by the model's type indices.
      const auto index = static_cast<std::size_t>(own.tiles->type.index);
      own.carries = index < options.types.size() && options.types[index];
      if (!own.carries) continue;
      const std::int64_t elements = score_elements(*own.tiles, options.heads);
      if (half) {
        own.half = Buffer<HalfScore>(elements, Purpose::scores);
      } else {
        own.running = Buffer<ScoreElement>(elements, Purpose::scores, options.device);
      }
      if (options.training) own.gradient = Buffer<float>(elements, Purpose::scores, options.device);
    }
  }
}

ScoreState::Held& ScoreState::held(const AttentionOperator& op) {
  // There are only a few operators, so no map is needed. An operator is identified by the address of its object.
  for (Held& held : operators_) {
    if (held.op == &op) return held;
  }
  fail("scores", "{}: expected an operator whose tiles the state was made with", op.name);
}

const ScoreState::Carried* ScoreState::find(AttentionType type) const {
  for (const Held& held : operators_) {
    for (const Carried& own : held.types) {
      if (own.tiles->type == type && own.carries) return &own;
    }
  }
  return nullptr;
}

const ScoreState::Carried& ScoreState::carried(AttentionType type) const {
  const Carried* const own = find(type);
  if (own == nullptr) fail("scores", "scores.{}: this type carries no scores", type.name);
  return *own;
}

bool ScoreState::carries(AttentionType type) const {
  return find(type) != nullptr;
}

float ScoreState::logit_scale(std::int64_t layer) const {
  // The running mean divides the sum over layers 0 … layer by their number.
  return options_.running_mean ? 1.0f / static_cast<float>(layer + 1) : 1.0f;
}

LayerScores ScoreState::scores_of(Held& held, std::int64_t layer, ScoreMode mode) {
  LayerScores scores;
  for (std::size_t t = 0; t < scores.size(); ++t) {
    Carried& own = held.types[t];
    // Types that carry no scores keep mode none: their logits are s.
    if (own.carries)
      scores[t] = {mode, own.running.data(), logit_scale(layer), static_cast<int>(layer), own.half.data()};
  }
  return scores;
}

void ScoreState::check_layer(const char* who, const char* what, std::int64_t layer) const {
  if (layer < 0 || layer >= options_.layers) {
    fail("scores", "{}: {} of layer {}: expected a layer below {}", who, what, layer, options_.layers);
  }
}

LayerScores ScoreState::forward(std::int64_t layer, const AttentionOperator& op) {
  Held& own = held(op);
  check_layer(op.name, "forward", layer);
  // Forward visits each layer once, in order; backward visits them in reverse.
  if (own.walking_back || own.finished || own.layer != layer - 1) {
    fail("scores",
         "{}: forward of layer {}: expected the running scores of layer {}, they hold layer {}{} (one state serves one "
         "encoder forward; make another, or finish the backward first)",
         op.name, layer, layer - 1, own.layer,
         own.walking_back ? ", and backward has begun" : (own.finished ? ", and the last layer has run" : ""));
  }
  ScoreMode mode = layer == 0 ? ScoreMode::write : ScoreMode::add;
  // Whether anything reads C after this layer: the next one, a backward, or an export.
  const bool kept = options_.training || options_.keep_last || layer + 1 < options_.layers;
  // Nothing will read C. A model of one layer writes C nevertheless: scores that are not written are not rounded to C's
  // step, and inference must give the same bits as training.
  if (!kept && layer > 0) mode = ScoreMode::add_unkept;
  if (kept) {
    own.layer = layer;
  } else {
    own.finished = true;
  }
  return scores_of(own, layer, mode);
}

LayerScores ScoreState::recompute(std::int64_t layer, const AttentionOperator& op) {
  Held& own = held(op);
  check_layer(op.name, "recomputation", layer);
  // C must belong to exactly this layer, otherwise the recomputed logits would be those of another layer.
  if (own.layer != layer) {
    fail("scores",
         "{}: recomputation of layer {}: the running scores hold layer {} (recompute from the last layer down)",
         op.name, layer, own.layer);
  }
  return scores_of(own, layer, ScoreMode::read);
}

LayerScoreGradients ScoreState::backward(std::int64_t layer, const AttentionOperator& op) {
  Held& own = held(op);
  check_layer(op.name, "backward", layer);
  if (!options_.training) {
    fail("scores", "{}: backward of layer {}: this state was made for inference and keeps no gradients", op.name,
         layer);
  }
  // Backward begins at the last layer, where nothing has been added to dC yet.
  const bool last = layer + 1 == options_.layers;
  if (own.layer != layer || own.walking_back == last) {
    fail("scores",
         "{}: backward of layer {}: the running scores hold layer {} (backward runs once per forward, from layer {} "
         "down to 0, with no forward in between)",
         op.name, layer, own.layer, options_.layers - 1);
  }
  LayerScoreGradients scores;
  for (std::size_t t = 0; t < scores.size(); ++t) {
    Carried& type = own.types[t];
    if (!type.carries) continue;
    scores[t] = {last ? ScoreGradientMode::first : ScoreGradientMode::inner, type.running.data(), type.gradient.data(),
                 logit_scale(layer),
                 // rewind: there is no layer below layer 0
                 layer > 0, static_cast<int>(layer)};
  }
  // The kernel rewinds C; from here on C belongs to the layer below.
  own.layer = layer - 1;
  own.walking_back = layer > 0;
  return scores;
}

void ScoreState::export_running(AttentionType type, float* external) const {
  const Carried& own = carried(type);
  if (options_.type == ScoreType::fp16) {
    export_scores(*own.tiles, options_.heads, own.half.data(), external);
  } else {
    export_scores(*own.tiles, options_.heads, OnHost(own.running).data(), external);
  }
}

void ScoreState::export_gradient(AttentionType type, float* external) const {
  if (!carries(type) || !options_.training) {
    fail("scores", "scores.{}: no gradient is kept (the type carries no scores, or the state is for inference)",
         type.name);
  }
  const Carried& own = carried(type);
  export_scores(*own.tiles, options_.heads, OnHost(own.gradient).data(), external);
}

std::int64_t ScoreState::bytes() const {
  std::int64_t total = 0;
  for (const Held& held : operators_) {
    for (const Carried& own : held.types) {
      total += bytes_of(own.running) + bytes_of(own.half) + bytes_of(own.gradient);
    }
  }
  return total;
}

}  // namespace etc::sparse

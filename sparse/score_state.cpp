#include "sparse/score_state.h"

#include "etc_core/base/error.h"

namespace etc::sparse {

namespace {
constexpr std::array<AttentionType, kAttentionTypes> kAllTypes = {AttentionType::l2l, AttentionType::l2g,
                                                                  AttentionType::g2g, AttentionType::g2l};
constexpr const char* kOperatorNames[] = {"long_attention", "global_attention"};

std::size_t at(AttentionType type) {
  return static_cast<std::size_t>(type);
}
template <typename T>
std::int64_t bytes_of(const Buffer<T>& buffer) {
  return buffer.size() * static_cast<std::int64_t>(sizeof(T));
}

// A buffer's numbers for the host to read: a copy only of what lies elsewhere.
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

ScoreState::ScoreState(const ScoreOptions& options, const LongTiles& long_tiles, const GlobalTiles& global_tiles)
    : options_(options), long_tiles_(&long_tiles), global_tiles_(&global_tiles) {
  if (options.layers < 1 || options.heads < 1) {
    fail("scores", "expected at least 1 layer and 1 head, got {} layers and {} heads", options.layers, options.heads);
  }
  for (AttentionType type : kAllTypes) {
    if (!carries(type)) continue;
    const std::int64_t elements = score_elements(tiles(type), options.heads);
    running_[at(type)] = Buffer<ScoreElement>(elements, Purpose::scores, options.device);
    if (options.training) gradient_[at(type)] = Buffer<float>(elements, Purpose::scores, options.device);
  }
}

const TypeTiles& ScoreState::tiles(AttentionType type) const {
  switch (type) {
    case AttentionType::l2l:
      return long_tiles_->l2l;
    case AttentionType::l2g:
      return long_tiles_->l2g;
    case AttentionType::g2g:
      return global_tiles_->g2g;
    default:
      return global_tiles_->g2l;
  }
}

float ScoreState::logit_scale(std::int64_t layer) const {
  return options_.running_mean ? 1.0f / static_cast<float>(layer + 1) : 1.0f;
}

TypeScores ScoreState::scores_of(AttentionType type, std::int64_t layer, ScoreMode mode) {
  if (!carries(type)) return {};
  return {mode, running_[at(type)].data(), logit_scale(layer), static_cast<int>(layer)};
}

void ScoreState::check_layer(Operator op, const char* what, std::int64_t layer) const {
  if (layer < 0 || layer >= options_.layers) {
    fail("scores", "{}: {} of layer {}: expected a layer below {}", kOperatorNames[op], what, layer, options_.layers);
  }
}

void ScoreState::forward(std::int64_t layer, Operator op, TypeScores& first, TypeScores& second) {
  Held& held = held_[op];
  check_layer(op, "forward", layer);
  if (held.walking_back || held.finished || held.layer != layer - 1) {
    fail("scores",
         "{}: forward of layer {}: expected the running scores of layer {}, they hold layer {}{} (one state serves one "
         "encoder forward; make another, or finish the backward first)",
         kOperatorNames[op], layer, layer - 1, held.layer,
         held.walking_back ? ", and backward has begun" : (held.finished ? ", and the last layer has run" : ""));
  }
  ScoreMode mode = layer == 0 ? ScoreMode::write : ScoreMode::add;
  const bool kept = options_.training || options_.keep_last || layer + 1 < options_.layers;
  // Nothing will read C. A model of one layer writes it all the same: unwritten scores are not rounded to C's step, and
  // inference must have the bits of training.
  if (!kept && layer > 0) mode = ScoreMode::add_unkept;
  const AttentionType types[2] = {op == kLong ? AttentionType::l2l : AttentionType::g2g,
                                  op == kLong ? AttentionType::l2g : AttentionType::g2l};
  first = scores_of(types[0], layer, mode);
  second = scores_of(types[1], layer, mode);
  if (kept) {
    held.layer = layer;
  } else {
    held.finished = true;
  }
}

void ScoreState::recompute(std::int64_t layer, Operator op, TypeScores& first, TypeScores& second) {
  check_layer(op, "recomputation", layer);
  if (held_[op].layer != layer) {
    fail("scores",
         "{}: recomputation of layer {}: the running scores hold layer {} (recompute from the last layer down)",
         kOperatorNames[op], layer, held_[op].layer);
  }
  first = scores_of(op == kLong ? AttentionType::l2l : AttentionType::g2g, layer, ScoreMode::read);
  second = scores_of(op == kLong ? AttentionType::l2g : AttentionType::g2l, layer, ScoreMode::read);
}

void ScoreState::backward(std::int64_t layer, Operator op, TypeScoreGradients& first, TypeScoreGradients& second) {
  Held& held = held_[op];
  check_layer(op, "backward", layer);
  if (!options_.training) {
    fail("scores", "{}: backward of layer {}: this state was made for inference and keeps no gradients",
         kOperatorNames[op], layer);
  }
  const bool last = layer + 1 == options_.layers;
  if (held.layer != layer || held.walking_back == last) {
    fail("scores",
         "{}: backward of layer {}: the running scores hold layer {} (backward runs once per forward, from layer {} "
         "down "
         "to 0, with no forward in between)",
         kOperatorNames[op], layer, held.layer, options_.layers - 1);
  }
  const ScoreGradientMode mode = last ? ScoreGradientMode::first : ScoreGradientMode::inner;
  const auto gradients_of = [&](AttentionType type) -> TypeScoreGradients {
    if (!carries(type)) return {};
    return {mode,      running_[at(type)].data(), gradient_[at(type)].data(), logit_scale(layer),
            layer > 0, static_cast<int>(layer)};
  };
  first = gradients_of(op == kLong ? AttentionType::l2l : AttentionType::g2g);
  second = gradients_of(op == kLong ? AttentionType::l2g : AttentionType::g2l);
  held.layer = layer - 1;
  held.walking_back = layer > 0;
}

void ScoreState::export_running(AttentionType type, float* external) const {
  if (!carries(type)) fail("scores", "scores.{}: this type carries no scores", attention_type_name(type));
  export_scores(tiles(type), options_.heads, OnHost(running_[at(type)]).data(), external);
}

void ScoreState::export_gradient(AttentionType type, float* external) const {
  if (!carries(type) || !options_.training) {
    fail("scores", "scores.{}: no gradient is kept (the type carries no scores, or the state is for inference)",
         attention_type_name(type));
  }
  export_scores(tiles(type), options_.heads, OnHost(gradient_[at(type)]).data(), external);
}

void ScoreState::import_running(std::int64_t layer, const std::array<const float*, kAttentionTypes>& external) {
  check_layer(kLong, "import", layer);
  for (AttentionType type : kAllTypes) {
    if (!carries(type)) continue;
    if (external[at(type)] == nullptr) {
      fail("scores", "scores.{}: import: expected values, got null", attention_type_name(type));
    }
    Buffer<ScoreElement>& running = running_[at(type)];
    Buffer<ScoreElement> values(running.size(), Purpose::scores);
    import_scores(tiles(type), options_.heads, external[at(type)], values.data());
    copy_bytes(running.device(), running.data(), Device::cpu, values.data(), bytes_of(values));
  }
  held_ = {Held{layer, false, false}, Held{layer, false, false}};
}

std::int64_t ScoreState::bytes() const {
  std::int64_t total = 0;
  for (AttentionType type : kAllTypes) {
    total += running_[at(type)].size() * static_cast<std::int64_t>(sizeof(ScoreElement)) +
             gradient_[at(type)].size() * static_cast<std::int64_t>(sizeof(float));
  }
  return total;
}

}  // namespace etc::sparse

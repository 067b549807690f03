#include "sparse/attention_checks.h"

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"

namespace etc::sparse {

void AttentionChecks::sizes() const {
  if (heads < 1 || head_size < 1)
    fail(op, "expected N >= 1 heads of D >= 1, got {}", shape_text({{"N", heads}, {"D", head_size}}));
}

void AttentionChecks::rows(const char* name, const Rows& rows, const char* letter, std::int64_t expected) const {
  if (rows.rows != expected) {
    fail(op, "{} must match the batch: expected {}, got {}", name,
         shape_text({{letter, expected}, {"N", heads}, {"D", head_size}}),
         shape_text({{letter, rows.rows}, {"N", heads}, {"D", head_size}}));
  }
  if (expected == 0) return;
  if (rows.data == nullptr)
    fail(op, "{}: expected {}, got null", name, shape_text({{letter, expected}, {"N", heads}, {"D", head_size}}));
  if (rows.stride < heads * head_size) {
    fail(op, "{}: expected rows at least N*D={} floats apart, got {}", name, heads * head_size, rows.stride);
  }
}

void AttentionChecks::rows(const char* name, const MutableRows& mutable_rows, const char* letter,
                           std::int64_t expected) const {
  rows(name, Rows{mutable_rows.data, mutable_rows.stride, mutable_rows.rows}, letter, expected);
}

void AttentionChecks::pointer(const char* name, const void* pointer, std::int64_t elements) const {
  if (elements > 0 && pointer == nullptr) fail(op, "{}: expected {} elements, got null", name, elements);
}

void AttentionChecks::table(const RelativeTable& table, const TypeTiles& first, const TypeTiles& second) const {
  if (table.vectors == nullptr) {
    if (table.biases != nullptr)
      fail(op, "rel_bias without rel: expected both or neither (rel null: labels only mask)");
    return;
  }
  if (table.labels < 1 || table.labels > kMasked) fail(op, "rel: expected R from 1 to 255, got R={}", table.labels);
  for (const TypeTiles* tiles : {&first, &second}) {
    if (tiles->relative && tiles->relative_labels > table.labels) {
      fail(op, "rel must match labels.{}: expected R={}, got R={}", attention_type_name(tiles->type),
           tiles->relative_labels, table.labels);
    }
  }
}

void AttentionChecks::table_gradients(const RelativeTable& table, const RelativeTableGradients& gradients) const {
  if (table.vectors == nullptr) return;
  pointer("drel", gradients.vectors, table.labels * heads * head_size);
  if (table.biases != nullptr) pointer("drel_bias", gradients.biases, table.labels * heads);
}

profiler::Work AttentionChecks::work(const TypeTiles& first, const TypeTiles& second, int products) const {
  const auto pairs = static_cast<double>((first.visible_pairs + second.visible_pairs) * heads);
  return {2.0 * products * pairs * static_cast<double>(head_size), 0};
}

void AttentionChecks::forward_compute(Device device, ComputeType compute, const DropoutArgs& args) const {
  if (compute == ComputeType::int8) fail(op, "compute: expected fp32 or bf16, got int8");
  if (device == Device::cpu && compute == ComputeType::bf16 && args.rate > 0.0f) {
    fail(op, "compute: bf16 is for inference: expected no dropout, got a rate of {}", args.rate);
  }
}

void AttentionChecks::backward_compute(Device device, ComputeType compute) const {
  if (device == Device::cuda && compute == ComputeType::bf16) return;
  if (compute != ComputeType::fp32) fail(op, "compute: backward expects fp32, got {}", compute_type_name(compute));
}

void AttentionChecks::dropout(const DropoutArgs& args) const {
  if (!(args.rate >= 0.0f && args.rate < 1.0f)) fail(op, "dropout: expected a rate in [0, 1), got {}", args.rate);
  if (args.rate > 0.0f && args.sample_ordinals == nullptr) fail(op, "dropout: expected sample ordinals, got null");
}

void AttentionChecks::alignment(const TypeTiles& tiles, const void* pointer) const {
  if (reinterpret_cast<std::uintptr_t>(pointer) % 64 != 0) {
    fail(op, "scores.{}: expected memory aligned to 64 bytes (Buffer gives it)", attention_type_name(tiles.type));
  }
}

void AttentionChecks::scores(const TypeTiles& tiles, const TypeScores& scores) const {
  if (scores.mode == ScoreMode::none) return;
  if (scores.running == nullptr && tiles.columns > 0) {
    fail(op, "scores.{}: expected running scores, got null", attention_type_name(tiles.type));
  }
  alignment(tiles, scores.running);
}

void AttentionChecks::scores(const TypeTiles& tiles, const TypeScoreGradients& scores) const {
  if (scores.mode == ScoreGradientMode::none || tiles.columns == 0) return;
  if (scores.running == nullptr || scores.gradient == nullptr) {
    fail(op, "scores.{}: expected running scores and their gradient, got null", attention_type_name(tiles.type));
  }
  alignment(tiles, scores.running);
  alignment(tiles, scores.gradient);
}

void fail_scores_out_of_range(AttentionType type, std::int64_t layer) {
  const bool is_long = type == AttentionType::l2l || type == AttentionType::l2g;
  fail(is_long ? "long_attention" : "global_attention",
       "scores.{}: layer {}: expected scores and running sums of at most {} in magnitude at every visible pair, got a "
       "larger one or one that is not a number (the model diverges; see its learning rate)",
       attention_type_name(type), layer, kScoreLimit);
}

}  // namespace etc::sparse

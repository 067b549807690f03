#include "tasks/analyze/member_labels.h"

#include <algorithm>

#include "etc_core/nn/etc_config.h"
#include "sparse/labels/relative_ids.h"

namespace etc::analyze {

namespace {

constexpr std::int64_t kDistance = 1;                // k; the labels of distances are not read
constexpr std::int64_t kLabels = 2 * kDistance + 4;  // R

}  // namespace

MemberLabels::MemberLabels(const FedEncoder& fed) : where_(fed.where()) {
  const auto* const model = dynamic_cast<const EtcConfig*>(&fed.model());
  if (model == nullptr || model->relative_pos_max_distance > 0) return;
  EtcConfig labelled = *model;
  labelled.relative_pos_max_distance = kDistance;
  labelled.relative_vocab_size = kLabels;
  task_ = feeding_task(fed.document(), labelled, fed.reader()->schema().task, where_);
  radius_ = model->local_radius;
  no_biases_.assign(static_cast<std::size_t>(kLabels * model->num_attention_heads), 0.0f);
}

void MemberLabels::read(Examples examples) {
  const EncoderInput input = task_->feed(examples, where_);
  sparse::LabelTensors labels;
  labels.examples = input.batch();
  labels.long_offsets = input.long_offsets.data();
  labels.global_offsets = input.global_offsets.data();
  labels.radius = radius_;
  labels.relative_labels = kLabels;
  labels.l2l = input.labels.l2l.data();
  labels.l2g = input.labels.l2g.data();
  labels.g2g = input.labels.g2g.data();
  labels.g2l = input.labels.g2l.data();
  tiles_.clear();
  tiles_.push_back(sparse::build_long_tiles(labels));
  tiles_.push_back(sparse::build_global_tiles(labels));
}

WatchedAttention MemberLabels::labelled(const WatchedAttention& watched) const {
  WatchedAttention with = watched;
  const auto own = std::find_if(tiles_.begin(), tiles_.end(), [&](const sparse::AttentionTiles& tiles) {
    return tiles.op == watched.inputs.tiles->op;
  });
  with.inputs.tiles = &*own;
  with.inputs.relative = {};
  with.inputs.relative.biases = no_biases_.data();
  with.inputs.relative.labels = kLabels;
  return with;
}

std::int64_t MemberLabels::member_label() {
  return sparse::member_id(kDistance);
}

}  // namespace etc::analyze

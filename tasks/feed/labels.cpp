#include "tasks/feed/labels.h"

#include <algorithm>
#include <numeric>

namespace etc::feed {

sparse::AttentionLabels labels_of(std::vector<sparse::AttentionStructure> structures, const EncoderConfig& model,
                                  bool global_attention) {
  sparse::LabelOptions options{model.local_radius, model.relative_pos_max_distance, model.use_hard_g2l_mask,
                               model.use_hard_l2g_mask};
  if (global_attention) return sparse::build_labels(structures, options);
  for (sparse::AttentionStructure& structure : structures) {
    std::iota(structure.global_segments.begin(), structure.global_segments.end(), 0);  // each alone
    structure.ignore_hard_g2l.clear();
  }
  options.use_hard_g2l_mask = true;
  sparse::AttentionLabels labels = sparse::build_labels(structures, options);
  std::fill(labels.l2g.begin(), labels.l2g.end(), sparse::kMasked);
  return labels;
}

}  // namespace etc::feed

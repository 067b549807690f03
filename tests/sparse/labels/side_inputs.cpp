#include "tests/sparse/labels/side_inputs.h"

#include "sparse/labels/relative_ids.h"

namespace etc::test {

using sparse::AttentionLabels;
using sparse::AttentionStructure;
using sparse::LabelOptions;

namespace {

using Ids = std::vector<std::int32_t>;

Ids mask_of(const Buffer<std::uint8_t>& labels) {
  Ids mask;
  for (const std::uint8_t label : labels) mask.push_back(label == sparse::kMasked ? 0 : 1);
  return mask;
}

Ids ids_of(const Buffer<std::uint8_t>& labels) {
  return {labels.begin(), labels.end()};
}

}  // namespace

std::vector<std::int32_t> window_ids(std::span<const std::uint8_t> l2l, const LabelOptions& options) {
  const std::int64_t W = 2 * options.local_radius + 1;
  Ids ids(l2l.begin(), l2l.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t distance = static_cast<std::int64_t>(i) % W - options.local_radius;
    if (ids[i] != sparse::kMasked) continue;
    ids[i] = static_cast<std::int32_t>(sparse::relative_id(distance, options.relative_pos_max_distance));
  }
  return ids;
}

SideInputs side_inputs(const AttentionStructure& example, const LabelOptions& options) {
  const AttentionLabels labels = sparse::build_labels({&example, 1}, options);
  SideInputs out;
  out.l2l_mask = mask_of(labels.l2l);
  out.l2g_mask = mask_of(labels.l2g);
  out.g2g_mask = mask_of(labels.g2g);
  out.g2l_mask = mask_of(labels.g2l);
  if (options.relative_pos_max_distance == 0) return out;

  AttentionStructure visible = example;
  for (Ids* segments : {&visible.long_segments, &visible.global_segments, &visible.long_sides, &visible.global_sides}) {
    segments->assign(segments->size(), 0);
  }
  const LabelOptions soft{options.local_radius, options.relative_pos_max_distance};
  const AttentionLabels ids = sparse::build_labels({&visible, 1}, soft);
  out.l2l_ids = window_ids({ids.l2l.begin(), ids.l2l.end()}, soft);
  out.l2g_ids = ids_of(ids.l2g);
  out.g2g_ids = ids_of(ids.g2g);
  out.g2l_ids = ids_of(ids.g2l);
  return out;
}

AttentionStructure structure_from_breakpoints(std::span<const std::int32_t> long_breakpoints,
                                              std::span<const std::int32_t> global_breakpoints,
                                              std::span<const std::int32_t> sentence_ids) {
  return sparse::structure_from_example_ids(sparse::example_ids_from_breakpoints(long_breakpoints),
                                            sparse::example_ids_from_breakpoints(global_breakpoints), sentence_ids);
}

}  // namespace etc::test

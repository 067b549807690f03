// The masks and ids of the published implementation, read off the labels that the library builds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sparse/labels/builders.h"

namespace etc::test {

// The eight tensors of the reference for one example: masks 0/1, and ids also at masked pairs; ids are empty when k = 0.
struct SideInputs {
  std::vector<std::int32_t> l2l_mask, l2l_ids;  // [L, W]
  std::vector<std::int32_t> l2g_mask, l2g_ids;  // [L, G]
  std::vector<std::int32_t> g2g_mask, g2g_ids;  // [G, G]
  std::vector<std::int32_t> g2l_mask, g2l_ids;  // [G, L]
};

// Masks are where the labels are not kMasked. Ids do not depend on what is visible: they are the labels of the same
// example with all pairs visible.
SideInputs side_inputs(const sparse::AttentionStructure& example, const sparse::LabelOptions& options);

// The ids of a label tensor's windows: the reference also has ids beyond the ends of the sequence.
std::vector<std::int32_t> window_ids(std::span<const std::uint8_t> l2l, const sparse::LabelOptions& options);

// The generic builder with breakpoints, a 1 at the last token of each packed example. long_breakpoints [L] and
// global_breakpoints [G] have the same number of ones; tokens after the last one are padding.
sparse::AttentionStructure structure_from_breakpoints(std::span<const std::int32_t> long_breakpoints,
                                                      std::span<const std::int32_t> global_breakpoints,
                                                      std::span<const std::int32_t> sentence_ids);

}  // namespace etc::test

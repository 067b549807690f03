// From a document's structure to label tensors (etc-core 8): sentences, paragraphs, links, packing.
//
// Two steps. An input builder (generic, fixed blocks, multihop) turns the arrays of ONE example into an
// AttentionStructure, O(L+G); build_labels writes the labels of a whole ragged batch from such structures, once per
// batch. Builders take padding and packing as the reference does, so that its numbers can be compared; a batch of the
// engine has none: every example is on its own and without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sparse/labels/labels.h"

namespace etc::sparse {

// Which tokens of one example see each other, and which belong together. Global indices < 0 or >= G mean "none".
struct AttentionStructure {
  std::vector<std::int32_t> long_segments;      // [L] l2l: equal segments see each other (within the radius)
  std::vector<std::int32_t> global_segments;    // [G] g2g: equal segments see each other
  std::vector<std::int32_t> long_sides;         // [L] l2g, g2l: a long and a global token of equal sides
  std::vector<std::int32_t> global_sides;       // [G]           see each other
  std::vector<std::int32_t> sentence_ids;       // [L] global token of the sentence each long token belongs to
  std::vector<std::int32_t> paragraph_ids;      // [L] likewise for paragraphs; empty: none
  std::vector<std::int32_t> linked_ids;         // [L] one more global token, for ids only, never for masks; empty: none
  std::vector<std::int32_t> ignore_hard_l2g;    // [L] 1: exempt from the hard l2g mask; empty: nobody
  std::vector<std::int32_t> ignore_hard_g2l;    // [G] 1: exempt from the hard g2l mask; empty: nobody
  std::vector<std::int32_t> global_paragraphs;  // [G] g2g ids say "other paragraph" where they differ; empty: never

  std::int64_t length() const { return static_cast<std::int64_t>(long_segments.size()); }     // L
  std::int64_t globals() const { return static_cast<std::int64_t>(global_segments.size()); }  // G
};

// ---- Input builders. All throw Error when arrays of one side differ in length. ----

// Generic builder (etc-core 8.1): tokens of equal example ids see each other. Only equality of ids matters.
//   long_example_ids, sentence_ids [L]; global_example_ids [G]
AttentionStructure structure_from_example_ids(std::span<const std::int32_t> long_example_ids,
                                              std::span<const std::int32_t> global_example_ids,
                                              std::span<const std::int32_t> sentence_ids);

// The same with a 1 at the last token of each packed example, as many in long_breakpoints [L] as in
// global_breakpoints [G] (not checked: the reference does not either); the rest is padding.
AttentionStructure structure_from_breakpoints(std::span<const std::int32_t> long_breakpoints,
                                              std::span<const std::int32_t> global_breakpoints,
                                              std::span<const std::int32_t> sentence_ids);

// Fixed blocks (etc-core 8.2): one global token for every tokens_per_block (>= 1) long tokens, G = ceil(L/block); a
// global is padding when its whole block is.
struct FixedBlocks {
  AttentionStructure structure;
  std::vector<std::int32_t> global_token_ids;  // [G]; 0 for padding
};
FixedBlocks fixed_block_structure(std::span<const std::int32_t> input_mask, std::int64_t tokens_per_block,
                                  std::int32_t global_token_id = 1);

// Multihop builder (etc-core 8.3; HotpotQA, WikiHop): one example, whose paragraphs do not see each other locally.
struct MultihopArrays {
  std::span<const std::int32_t> long_paragraph_breakpoints;    // [L] 1 at the last token of each paragraph
  std::span<const std::int32_t> long_paragraph_ids;            // [L] index of the global paragraph token, -1: none
  std::span<const std::int32_t> long_sentence_ids;             // [L] index of the global sentence token, -1: none
  std::span<const std::int32_t> global_paragraph_breakpoints;  // [G]
  std::span<const std::int32_t> ignore_hard_g2l;               // [G] or empty
  std::span<const std::int32_t> ignore_hard_l2g;               // [L] or empty
  std::span<const std::int32_t> linked_ids;                    // [L] or empty
  bool flat_sequence = false;  // the generic builder instead: paragraphs, links and ignore masks are not used
};
AttentionStructure multihop_structure(const MultihopArrays& arrays);

// ---- Labels. ----

// The model's part; fields of its configuration.
struct LabelOptions {
  std::int64_t local_radius = 0;               // W = 2*local_radius+1
  std::int64_t relative_pos_max_distance = 0;  // k; 0: no relative labels at all, also none of membership
  bool use_hard_g2l_mask = false;              // a global token sees only the long tokens that belong to it
  bool use_hard_l2g_mask = false;              // a long token sees only the global tokens it belongs to
};

// Labels of a ragged batch, one structure per example.
//   l2l [i,w] = id(w - radius)                         where long_segments are equal
//   l2g [i,g] = R+1 if i belongs or is linked to g, else R   where sides are equal (and, if hard, i belongs to g)
//   g2g [g,h] = id(h - g), R+2 in another paragraph    where global_segments are equal
//   g2l [g,i] = l2g [i,g]'s id                         where sides are equal (and, if hard, i belongs to g)
// with R = 2k+1; kMasked elsewhere; 0 where visible when k = 0 (long_relative, global_relative false).
// Rules: lengths of 0 are fine; throws Error when radius < 1, k < 0 or k > kMaxRelativeDistance; equal labels for any
//   thread count and any batch neighbours. Cost: one pass over the labels, T*W + sum(2*L*G + G*G) bytes.
AttentionLabels build_labels(std::span<const AttentionStructure> examples, const LabelOptions& options);

// The eight tensors of the reference for one example: masks 0/1, ids also at masked pairs. For comparison with it and
// for analysis; the engine itself uses labels only. Ids are empty when k = 0. Same rows as build_labels, not folded.
struct SideInputs {
  std::vector<std::int32_t> l2l_mask, l2l_ids;  // [L, W]
  std::vector<std::int32_t> l2g_mask, l2g_ids;  // [L, G]
  std::vector<std::int32_t> g2g_mask, g2g_ids;  // [G, G]
  std::vector<std::int32_t> g2l_mask, g2l_ids;  // [G, L]
};
SideInputs build_side_inputs(const AttentionStructure& example, const LabelOptions& options);

}  // namespace etc::sparse

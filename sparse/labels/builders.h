// Conversion of a document's structure (sentences, paragraphs, links, packing) into label tensors (etc-core 8).
//
// There are two steps. An input builder (generic, fixed blocks, multihop) converts the arrays of ONE example into an
// AttentionStructure, O(L+G). build_labels writes the labels of a whole ragged batch from these structures, once per
// batch. Builders accept padding and packing like the reference, so that results can be compared; the engine's own
// batches have neither.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sparse/labels/labels.h"

namespace etc::sparse {

// Which tokens of one example see each other, and which long tokens belong to which global token. Global indices < 0 or
// >= G mean "none".
struct AttentionStructure {
  std::vector<std::int32_t> long_segments;      // [L] l2l: equal segments see each other (within the radius)
  std::vector<std::int32_t> global_segments;    // [G] g2g: equal segments see each other
  std::vector<std::int32_t> long_sides;         // [L] l2g, g2l: a long and a global token see each other
  std::vector<std::int32_t> global_sides;       // [G]           if their sides are equal
  std::vector<std::int32_t> sentence_ids;       // [L] global token of the sentence each long token belongs to
  std::vector<std::int32_t> paragraph_ids;      // [L] global token of its paragraph; empty: none
  std::vector<std::int32_t> linked_ids;         // [L] one more global token, for ids only, never for masks; empty: none
  std::vector<std::int32_t> ignore_hard_l2g;    // [L] 1: exempt from the hard l2g mask; empty: no token is
  std::vector<std::int32_t> ignore_hard_g2l;    // [G] 1: exempt from the hard g2l mask; empty: no token is
  std::vector<std::int32_t> global_paragraphs;  // [G] g2g ids say "other paragraph" where they differ; empty: never

  std::int64_t length() const { return static_cast<std::int64_t>(long_segments.size()); }     // L
  std::int64_t globals() const { return static_cast<std::int64_t>(global_segments.size()); }  // G
};

// ---- Input builders. All throw Error when arrays of one side differ in length. ----

// Example ids counted from the end (etc-core 8.1): breakpoints, a 1 at the last token of each packed example or paragraph,
// 0 1 0 0 1 0 give 2 2 1 1 1 0; what follows the last breakpoint is padding and has id 0.
std::vector<std::int32_t> example_ids_from_breakpoints(std::span<const std::int32_t> breakpoints);

// Generic builder (etc-core 8.1): tokens of equal example ids see each other. Only equality of ids matters.
//   long_example_ids, sentence_ids [L]; global_example_ids [G]
AttentionStructure structure_from_example_ids(std::span<const std::int32_t> long_example_ids,
                                              std::span<const std::int32_t> global_example_ids,
                                              std::span<const std::int32_t> sentence_ids);

// Fixed blocks (etc-core 8.2): one global token for every tokens_per_block (>= 1) long tokens, G = ceil(L/block); a
// global is padding when its whole block is.
struct FixedBlocks {
  AttentionStructure structure;
  std::vector<std::int32_t> global_token_ids;  // [G]; 0 for padding
};
FixedBlocks fixed_block_structure(std::span<const std::int32_t> input_mask, std::int64_t tokens_per_block,
                                  std::int32_t global_token_id = 1);

// Multihop builder (etc-core 8.3; HotpotQA, WikiHop): one example; tokens of different paragraphs are masked in l2l.
struct MultihopArrays {
  std::span<const std::int32_t> long_paragraph_breakpoints;    // [L] 1 at the last token of each paragraph
  std::span<const std::int32_t> long_paragraph_ids;            // [L] index of the global paragraph token, -1: none
  std::span<const std::int32_t> long_sentence_ids;             // [L] index of the global sentence token, -1: none
  std::span<const std::int32_t> global_paragraph_breakpoints;  // [G]
  std::span<const std::int32_t> ignore_hard_g2l;               // [G] or empty
  std::span<const std::int32_t> ignore_hard_l2g;               // [L] or empty
  std::span<const std::int32_t> linked_ids;                    // [L] or empty
  bool flat_sequence = false;  // use the generic builder; paragraphs, links and ignore masks are ignored
};
AttentionStructure multihop_structure(const MultihopArrays& arrays);

// ---- Labels. ----

// Options from the model's configuration.
struct LabelOptions {
  std::int64_t local_radius = 0;               // W = 2*local_radius+1
  std::int64_t relative_pos_max_distance = 0;  // k; 0: no relative labels, neither of distance nor of membership
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

}  // namespace etc::sparse

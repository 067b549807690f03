// Label tensors: the form in which kernels get a batch's attention structure.
//
// One byte per query/key pair and attention type, shared by all heads and layers: the pair's relative label, or
// kMasked. Kernels know nothing of sentences, paragraphs or packing; builders.h converts those into labels once per
// batch, and labels_from_masks_and_ids converts explicit masks and ids (the reference's side inputs).
#pragma once

#include <cstdint>

#include "etc_core/base/buffer.h"
#include "sparse/attention_types.h"  // kMasked

namespace etc::sparse {

inline constexpr std::int64_t kMaxRelativeLabels = 255;    // R at most: labels 0 … 254
inline constexpr std::int64_t kMaxRelativeDistance = 125;  // k at most: the largest label is 2k+3 (etc-core 4.2)

// The four label tensors of a ragged batch, each in the external form of one head's scores. An empty buffer is a null
// tensor: everything visible, no relative term.
struct AttentionLabels {
  Buffer<std::uint8_t> l2l;  // [T, W]; column w is the key at distance w - radius, kMasked outside the example
  Buffer<std::uint8_t> l2g;  // per example [L, G], one after the other
  Buffer<std::uint8_t> g2g;  // per example [G, G]
  Buffer<std::uint8_t> g2l;  // per example [G, L]

  // Whether the labels of a side select relative vectors. If not, visible pairs have label 0, which has no meaning, and
  // the side's kernels must be called with rel = null.
  bool long_relative = false;    // l2l and l2g
  bool global_relative = false;  // g2g and g2l
};

// Explicit masks and ids of a padded batch, as the reference takes them. Null: not given.
struct MasksAndIds {
  std::int64_t batch = 0;                  // B
  std::int64_t length = 0;                 // L
  std::int64_t globals = 0;                // G
  std::int64_t radius = 0;                 // W = 2*radius+1; below 1 is an Error
  const std::int32_t* l2l_mask = nullptr;  // [B, L, W], 0 or 1
  const std::int32_t* l2g_mask = nullptr;  // [B, L, G]
  const std::int32_t* g2g_mask = nullptr;  // [B, G, G]
  const std::int32_t* g2l_mask = nullptr;  // [B, G, L]
  const std::int32_t* l2l_ids = nullptr;   // [B, L, W], below R where visible
  const std::int32_t* l2g_ids = nullptr;   // [B, L, G]
  const std::int32_t* g2g_ids = nullptr;   // [B, G, G]
  const std::int32_t* g2l_ids = nullptr;   // [B, G, L]
};

// Labels of explicit masks and ids, for B ragged examples of exactly L long and G global tokens, padding included.
//   label = id where mask is 1 (or not given), kMasked where it is 0; without ids 0 where visible
// Rules: window entries outside the sequence are kMasked whatever the mask says (etc-core 5.4); a type with neither
//   mask nor ids stays null. Throws Error when a mask is neither 0 nor 1, when an id at a visible pair is not in
//   [0, R), when one type of a side has ids and the other has none (etc-core 2.2, rules 8 and 9), when ids are given
//   and relative_labels (R) is 0 (rule 10), when R exceeds 255. Ids at masked pairs are ignored.
// Cost: one pass over the arrays given.
AttentionLabels labels_from_masks_and_ids(const MasksAndIds& arrays, std::int64_t relative_labels);

}  // namespace etc::sparse

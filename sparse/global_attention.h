// global_attention: the attention of global tokens, one softmax over two attention types. Forward and backward.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/kernel_slot.h"
#include "sparse/attention_types.h"

namespace etc::sparse {

struct GlobalTiles;  // visible_tiles.h: offsets, labels and the list of visible tiles of a batch

// What forward and backward both read.
struct GlobalAttentionInputs {
  std::int64_t heads = 0;      // N
  std::int64_t head_size = 0;  // D
  Rows q, k, v;                // [U, N, D]
  Rows lk, lv;                 // [T, N, D]
  RelativeTable relative;
  const GlobalTiles* tiles = nullptr;
  DropoutArgs dropout;
  ComputeType compute = ComputeType::fp32;  // bf16: products of rounded numbers (cpu: inference only)
};

struct GlobalAttentionForward {
  GlobalAttentionInputs inputs;
  TypeScores g2g, g2l;
  MutableRows out;          // [U, N, D] =
  float* lse = nullptr;     // [N, U] =
  void* scratch = nullptr;  // global_attention_forward_scratch_bytes, 64-byte aligned
};

struct GlobalAttentionBackward {
  GlobalAttentionInputs inputs;
  TypeScoreGradients g2g, g2l;
  Rows out;                    // of the forward, [U, N, D]
  const float* lse = nullptr;  // of the forward, [N, U]
  Rows dout;                   // [U, N, D]
  MutableRows dq, dk, dv;      // [U, N, D] =
  MutableRows dlk, dlv;        // [T, N, D] =
  RelativeTableGradients drelative;
  void* scratch = nullptr;  // global_attention_backward_scratch_bytes, 64-byte aligned
};

// Attention of every global token over all global tokens (g2g) and all long tokens (g2l) of its example, one softmax.
//   s_ij  = (q_i·k_j + q_i·rel[label_ij] + rel_bias[label_ij]) / sqrt(D)     g2l: lk_j, lv_j instead of k_j, v_j
//   C_ij  = s_ij | C_ij + s_ij       running scores of this type: raw, before the mask (ScoreMode write | add)
//   p_i   = softmax_j(c·C_ij) over the visible j of both types    c = 1, or 1/(layer+1): running mean
//   out_i = sum_j dropout(p_ij) v_j                               dropout is not renormalised
//   q, k, v                       [U, N, D]       global queries, keys, values
//   lk, lv                        [T, N, D]       long keys, values
//   long_offsets, global_offsets  [B+1] int64     example b owns global tokens global_offsets[b] …
//   global_offsets[b+1]-1 rel, rel_bias                 [R, N, D], [R, N]   null: labels only mask labels.g2g,
//   labels.g2l        per example [G, G], [G, L]; uint8, 255 = masked; null: all visible, no relative term
//                                 (offsets and labels come inside `tiles`, built once per batch)
//   scores of g2g, g2l            ScoreMode none: this type carries no scores, C = s
//   out =                         [U, N, D]
//   lse =                         [N, U]          log-sum-exp of the logits, saved for backward
// Rules: as long_attention: a query with no visible key gives out = 0, lse = -inf and no gradient; at masked pairs
//   scores hold any finite value; scores out of range at a visible pair are an Error; D >= 1; same bits for any thread
//   count and any batch neighbours (keys are split at fixed places counted from the example's first token).
// Cost: O(N*D*(visible pairs + U*R)) time; scratch: one partial output row per query and key split.
// Source: etc-core 5.1, 5.3 (ETC, "global-local attention"), 9.2 (RealFormer, equations of section 3).
void global_attention_forward(Device device, const GlobalAttentionForward& args);

// Gradients of the above; formulas and rules as long_attention_backward.
//   dq, dk, dv =  [U, N, D];  dlk, dlv =  [T, N, D];  drel +=  [R, N, D];  drel_bias +=  [R, N]
// Cost: 5 products of the size of the forward's 2; scratch: one partial dq row per query and key split.
void global_attention_backward(Device device, const GlobalAttentionBackward& args);

// Bytes of scratch a call needs on this device with the present thread count; q, k, v … need not be set yet.
std::int64_t global_attention_forward_scratch_bytes(Device device, const GlobalAttentionInputs& inputs);
std::int64_t global_attention_backward_scratch_bytes(Device device, const GlobalAttentionInputs& inputs);

extern KernelSlot<void(const GlobalAttentionForward&)> global_attention_forward_slot;
extern KernelSlot<void(const GlobalAttentionBackward&)> global_attention_backward_slot;
extern KernelSlot<std::int64_t(const GlobalAttentionInputs&)> global_attention_forward_scratch_slot;
extern KernelSlot<std::int64_t(const GlobalAttentionInputs&)> global_attention_backward_scratch_slot;

}  // namespace etc::sparse

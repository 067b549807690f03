// long_attention: the attention of long tokens, one softmax over two attention types. Forward and backward.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/kernel_slot.h"
#include "sparse/attention_types.h"

namespace etc::sparse {

struct LongTiles;  // visible_tiles.h: offsets, radius, labels and the list of visible tiles of a batch

// What forward and backward both read.
struct LongAttentionInputs {
  std::int64_t heads = 0;      // N
  std::int64_t head_size = 0;  // D
  Rows q, k, v;                // [T, N, D]
  Rows gk, gv;                 // [U, N, D]
  RelativeTable relative;
  const LongTiles* tiles = nullptr;
  DropoutArgs dropout;
  ComputeType compute = ComputeType::fp32;  // bf16: products of rounded numbers (cpu: inference only)
};

struct LongAttentionForward {
  LongAttentionInputs inputs;
  TypeScores l2l, l2g;
  MutableRows out;          // [T, N, D] =
  float* lse = nullptr;     // [N, T] =
  void* scratch = nullptr;  // long_attention_forward_scratch_bytes, 64-byte aligned
};

struct LongAttentionBackward {
  LongAttentionInputs inputs;
  TypeScoreGradients l2l, l2g;
  Rows out;                    // of the forward, [T, N, D]
  const float* lse = nullptr;  // of the forward, [N, T]
  Rows dout;                   // [T, N, D]
  MutableRows dq, dk, dv;      // [T, N, D] =
  MutableRows dgk, dgv;        // [U, N, D] =
  RelativeTableGradients drelative;
  void* scratch = nullptr;  // long_attention_backward_scratch_bytes, 64-byte aligned
};

// Attention of every long token over its window (l2l) and all global tokens of its example (l2g), one softmax.
//   s_ij  = (q_i·k_j + q_i·rel[label_ij] + rel_bias[label_ij]) / sqrt(D)     l2g: gk_j, gv_j instead of k_j, v_j
//   C_ij  = s_ij | C_ij + s_ij       running scores of this type: raw, before the mask (ScoreMode write | add)
//   p_i   = softmax_j(c·C_ij) over the visible j of both types    c = 1, or 1/(layer+1): running mean
//   out_i = sum_j dropout(p_ij) v_j                               dropout is not renormalised
//   q, k, v                       [T, N, D]       long queries, keys, values
//   gk, gv                        [U, N, D]       global keys, values
//   long_offsets, global_offsets  [B+1] int64     example b owns long tokens long_offsets[b] … long_offsets[b+1]-1
//   rel, rel_bias                 [R, N, D], [R, N]   null: labels only mask
//   labels.l2l, labels.l2g        [T, W], per example [L, G]; uint8, 255 = masked; null: all visible, no relative term
//                                 (offsets, radius and labels come inside `tiles`, built once per batch)
//   scores of l2l, l2g            ScoreMode none: this type carries no scores, C = s
//   out =                         [T, N, D]
//   lse =                         [N, T]          log-sum-exp of the logits, saved for backward
// Rules: W = 2*radius+1; keys outside the example do not exist; a query with no visible key gives out = 0, lse = -inf
//   and no gradient; at masked pairs scores hold any finite value; |s| or |C| above kScoreLimit, or s not a number, at
//   a visible pair of a type that carries scores is an Error; D >= 1; same bits for any thread count and any batch
//   neighbours.
// Cost: O(N*D*(visible pairs + T*R)) time; memory: lse, and in scratch per thread one segment's keys and values and the
//   scores of 16 queries; nothing of size T*(W+G).
// Source: etc-core 5.1, 5.3 (ETC, "global-local attention"), 9.2 (RealFormer, equations of section 3).
void long_attention_forward(Device device, const LongAttentionForward& args);

// Gradients of the above.
//   ds_ij = p_ij (dropout'_ij dout_i·v_j - dout_i·out_i) c                     at visible pairs, else 0
//   dC_ij = ds_ij | dC_ij + ds_ij      (ScoreGradientMode first | inner);  without scores dC = ds
//   dq_i  = sum_j dC_ij (k_j + rel[label_ij]) / sqrt(D)       dk_j = sum_i dC_ij q_i / sqrt(D)
//   dv_j  = sum_i dropout(p_ij) dout_i                        drel[r] += sum_{label_ij = r} dC_ij q_i / sqrt(D)
//   C_ij  = C_ij - s_ij                if rewind
//   dq, dk, dv =  [T, N, D];  dgk, dgv =  [U, N, D];  drel +=  [R, N, D];  drel_bias +=  [R, N]
// Rules: inputs, dropout, out and lse are those of the forward; a type that carries scores reads p from C of this
// layer,
//   not from q·k; parameter gradients are summed over a fixed partition in a fixed order.
// Cost: 5 products of the size of the forward's 2; scratch: per segment its keys' gradients.
void long_attention_backward(Device device, const LongAttentionBackward& args);

// Bytes of scratch a call needs on this device with the present thread count; q, k, v … need not be set yet.
std::int64_t long_attention_forward_scratch_bytes(Device device, const LongAttentionInputs& inputs);
std::int64_t long_attention_backward_scratch_bytes(Device device, const LongAttentionInputs& inputs);

extern KernelSlot<void(const LongAttentionForward&)> long_attention_forward_slot;
extern KernelSlot<void(const LongAttentionBackward&)> long_attention_backward_slot;
extern KernelSlot<std::int64_t(const LongAttentionInputs&)> long_attention_forward_scratch_slot;
extern KernelSlot<std::int64_t(const LongAttentionInputs&)> long_attention_backward_scratch_slot;

}  // namespace etc::sparse

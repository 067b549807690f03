// The sparse attention operator: queries over two key sets under one softmax. Forward and backward.
//
// All models and devices share this contract. A model's fixed choices (names, types, division of work) are in its
// AttentionOperator, which the tiles point to; only the tiles say which pairs are visible.
#pragma once

#include <array>
#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/element_type.h"
#include "etc_core/base/kernel_slot.h"
#include "sparse/attention_types.h"

namespace etc::sparse {

struct AttentionTiles;  // visible_tiles.h: the operator, and offsets, labels and visible tiles of both key sets

struct KeySet {
  Rows k, v;  // [keys, N, D]
};

struct KeySetGradients {
  MutableRows dk, dv;  // [keys, N, D] =
};

// What forward and backward both read.
struct AttentionInputs {
  std::int64_t heads = 0;      // N
  std::int64_t head_size = 0;  // D
  Rows q;                      // [queries, N, D]
  KeySet keys[kKeySets];
  RelativeTable relative;
  const AttentionTiles* tiles = nullptr;
  DropoutArgs dropout;
  ComputeType compute = ComputeType::fp32;  // bf16: products of rounded numbers, sums in fp32
  float scale = 0.0f;                       // of the scores; 0: 1/sqrt(D). T5 does not scale: 1
  ElementType type = ElementType::fp32;     // of q, k, v, and of out and all their gradients; bf16: see row_type()
};

// The scale that a call applies to its scores.
float score_scale(const AttentionInputs& inputs);

struct AttentionForward {
  AttentionInputs inputs;
  std::array<TypeScores, kKeySets> scores;
  MutableRows out;          // [queries, N, D] =
  float* lse = nullptr;     // [N, queries] =
  void* scratch = nullptr;  // attention_forward_scratch_bytes, 64-byte aligned
};

struct AttentionBackward {
  AttentionInputs inputs;
  std::array<TypeScoreGradients, kKeySets> scores;
  Rows out;                    // of the forward, [queries, N, D]
  const float* lse = nullptr;  // of the forward, [N, queries]
  Rows dout;                   // [queries, N, D]
  MutableRows dq;              // [queries, N, D] =
  KeySetGradients dkeys[kKeySets];
  RelativeTableGradients drelative;
  void* scratch = nullptr;  // attention_backward_scratch_bytes, 64-byte aligned
};

// Attention of every query over the keys it sees of both key sets of its example, one softmax.
//   s_ij  = scale·(m_ij + q_i·rel[r] + k_j·rel_k[r] + rel_bias[r])        r = label_ij; scale: 1/sqrt(D) unless given
//   m_ij  = q_i·k_j | factor[r]·(q_i·k_j) | sum_c q_ic k_jc w[r]_c        the first form without factor and w
//   C_ij  = s_ij | C_ij + s_ij             running scores of the pair's type: raw, before the mask (ScoreMode)
//   p_i   = softmax_j(c·C_ij) over the visible j of both key sets       c = 1, or 1/(layer+1): running mean
//   out_i = sum_j dropout(p_ij) (v_j + rel_v[r])                        dropout is not renormalised
// Shapes (T, U in ETC: long and global tokens of the batch; q of one kind, keys[0] of the same, keys[1] of the other):
//   q                   [queries, N, D]
//   keys[t].k, .v       [keys of set t, N, D]
//   rel, rel_k, w, rel_v [R, N, D]; rel_bias, factor [R, N]        each may be absent (RelativeTable); [R, D] and [R]
//                       where heads share them; for a type without labels only q·k and v remain
//   scores[t]           ScoreMode none: this type carries no scores, C = s
//   out =               [queries, N, D]
//   lse =               [N, queries]           log-sum-exp of the logits, saved for backward
//   Offsets of the examples, radius and labels are part of `tiles`, built once per batch.
// Memory: rows, tables, scores, lse, gradients and scratch are on the device; tiles and sample_ordinals on the host.
//   Labels are listed in the tiles or computed from the pair's distance (distance_labels.h).
// Rules: a query with no visible key gives out = 0, lse = -inf and no gradient. At masked pairs scores hold any value.
//   |s| or |C| above kScoreLimit, or s not a number, at a visible pair of a type that carries scores is an Error.
//   D >= 1. The same bits for any thread count and any batch neighbours: work is divided at fixed positions, counted
//   from the example's first token.
// Cost: O(N*D*(visible pairs + queries*R)) time; in columns with several labels rel_k and w cost about 4 and 8 times as
//   much as q·k. Memory: lse and scratch. Scratch on the CPU holds, per thread, one task's keys and values and the
//   logits of 16 queries; with Partition::keys also one partial output row per query and key split. Nothing has size
//   queries*keys.
// Source: etc-core 5.1, 5.3 (ETC, "global-local attention"), 9.2 (RealFormer, equations of section 3);
//   relative-positions 3 to 8 (rel, rel_v: Shaw et al.; rel_k, factor, w: Huang et al., methods 1 to 4).
void attention_forward(Device device, const AttentionForward& args);

// The compute type that forward and backward use with this table when `wanted` is requested: fp32 instead of bf16 where
// the table has rel_k, w or rel_v and the device's bf16 kernels do not support them (the CPU's do not).
ComputeType compute_of(Device device, ComputeType wanted, const RelativeTable& table);

// The most table rows for kernels that read one byte per pair of a mixed column, labels by distance included.
inline constexpr std::int64_t kMostListedLabels = 256;

// Whether GPU kernels must process the call pair by pair, in fp32: it has rel_k, factor, w or rel_v, a table of more
// than kMostListedLabels rows, or tiles per head.
bool is_pairwise(const AttentionInputs& inputs);

// The preferred type of q, k and v for a call with these sizes, tables and tiles (the rows need not be set): bf16 where
// the device's kernels multiply in bf16 and read bf16 rows. out and the gradients are then rounded as they are written.
ElementType row_type(Device device, const AttentionInputs& inputs);

// Gradients of the above. With m_ij = q_i·k_j dfactor and dw are absent, e_ij = 1 and w = 1.
//   ds_ij = p_ij (dropout'_ij dout_i·(v_j + rel_v[r]) - dout_i·out_i) c        at visible pairs, else 0
//   dC_ij = ds_ij | dC_ij + ds_ij      (ScoreGradientMode first | inner);  without scores dC = ds
//   g_ij  = scale·dC_ij,  e_ij = factor[r];  gradients of row r sum over the pairs with label r
//   dq_i  = sum_j g_ij (e_ij w[r]⊙k_j + rel[r])           dk_j = sum_i g_ij (e_ij w[r]⊙q_i + rel_k[r])
//   dv_j  = sum_i dropout(p_ij) dout_i                    drel_v[r] += sum dropout(p_ij) dout_i
//   drel[r] += sum g_ij q_i      drel_k[r] += sum g_ij k_j      drel_bias[r] += sum g_ij
//   dfactor[r] += sum g_ij q_i·k_j      dw[r] += sum g_ij q_i⊙k_j
//   C_ij  = C_ij - s_ij                if rewind
// Shapes: dq = [queries, N, D];  dkeys[t] = [keys of set t, N, D];  tables' gradients as the tables.
// Rules: inputs, dropout, compute, out and lse are those of the forward. A type that carries scores computes p from C
//   of this layer, not from q·k. In bf16 the operands of all products are rounded, including p and ds; the sums for the
//   tables use p and ds in fp32. Parameter gradients are summed over a fixed partition in a fixed order.
// Cost: 5 products of the size of the forward's 2. Scratch holds partial sums: dk and dv of keys that several tasks
//   see, dq where keys are split, and the tables' gradients.
void attention_backward(Device device, const AttentionBackward& args);

// Bytes of scratch that a call needs on this device with the current thread count; q, k, v … need not be set yet.
std::int64_t attention_forward_scratch_bytes(Device device, const AttentionInputs& inputs);
std::int64_t attention_backward_scratch_bytes(Device device, const AttentionInputs& inputs);

extern KernelSlot<void(const AttentionForward&)> attention_forward_slot;
extern KernelSlot<void(const AttentionBackward&)> attention_backward_slot;
extern KernelSlot<std::int64_t(const AttentionInputs&)> attention_forward_scratch_slot;
extern KernelSlot<std::int64_t(const AttentionInputs&)> attention_backward_scratch_slot;

}  // namespace etc::sparse

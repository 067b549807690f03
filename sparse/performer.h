// Linear attention with positive random features (FAVOR+, "Rethinking Attention with Performers"). It is a separate
// operator because it has no scores. Forward and backward; time and memory are linear in the length.
#pragma once

#include <cstdint>

#include "etc_core/base/device.h"
#include "etc_core/base/kernel_slot.h"
#include "sparse/attention_types.h"

namespace etc::sparse {

// What forward and backward both read.
struct PerformerInputs {
  std::int64_t heads = 0;                       // N
  std::int64_t head_size = 0;                   // D
  std::int64_t features = 0;                    // m
  Rows q;                                       // [queries, N, D]
  Rows k, v;                                    // [keys, N, D]
  const float* projection = nullptr;            // [m, D], shared by all heads (performer_projection.h draws it)
  std::int64_t examples = 0;                    // B
  const std::int64_t* query_offsets = nullptr;  // [B+1]
  const std::int64_t* key_offsets = nullptr;    // [B+1]; causal: equal to query_offsets
  bool causal = false;                          // a token sees itself and earlier tokens
  bool stabilised = true;                       // false: the plain formula, which overflows for large inputs
  float scale = 0;                              // s, of q·k; 0: 1/sqrt(D)
};

struct PerformerForward {
  PerformerInputs inputs;
  MutableRows out;                // [queries, N, D] =
  float* denominators = nullptr;  // [N, queries] =
  float* state = nullptr;         // [performer_state_floats] =, 64-byte aligned
  void* scratch = nullptr;        // performer_forward_scratch_bytes, 64-byte aligned
};

struct PerformerBackward {
  PerformerInputs inputs;
  Rows out;                             // of the forward, as denominators and state
  const float* denominators = nullptr;  // [N, queries]
  const float* state = nullptr;
  Rows dout;                // [queries, N, D]
  MutableRows dq;           // [queries, N, D] =
  MutableRows dk, dv;       // [keys, N, D] =
  void* scratch = nullptr;  // performer_backward_scratch_bytes, 64-byte aligned
};

// Attention of every query over all keys of its example (causal: up to its own), with features instead of exp(q·k).
//   x'    = x sqrt(s),  u_r(x) = w_r·x',  h(x) = |x'|^2 / 2                   w: rows of the projection
//   f(q_i) = exp(u - h - max_r u_r(q_i)) + 1e-6                               per query
//   f(k_j) = exp(u - h - max_{j,r} u_r(k_j)) + 1e-6                           per example and head
//   den_i = f(q_i)·sum_j f(k_j)                                               j <= i if causal
//   out_i = f(q_i)·(sum_j f(k_j) v_jT) / den_i
// Not stabilised: without maxima and 1e-6. The published 1/sqrt(m) of both features cancels and is left out.
// Rules: an example without keys gives out = 0, den = 0 and no gradient. No masks, labels, relative tables, dropout or
//   running scores, because there are no pairs. (Scores summed over layers: heads joined, nn/carried_heads.h, with the
//   scale of one layer.) The same bits for any thread count and any batch neighbours: maxima are taken per example, sums
//   run over chunks of 512 rows counted from the example's first. With causal and stabilised, a later key still
//   influences a query through the common maximum, but only by the added 1e-6.
// Cost: 8*N*m*D operations per token, causal about 12. Memory: state, N*m*(D+1) floats per example (causal: per chunk
//   of 512 tokens); scratch, as much per chunk, and the features of 64 rows per thread (on a GPU per chunk).
// Throws Error "performer: …" on N, D, m < 1, offsets that do not start at 0 or that decrease, causal with unequal
//   offsets, rows that do not match the batch, strides below N*D, and missing arrays.
// Source: Choromanski et al. 2021, equations 2-6, and the published program for the stabiliser.
void performer_forward(Device device, const PerformerForward& args);

// Gradients of the above, including those through the maxima.
// Rules: inputs, out, denominators and state are those of the forward.
// Cost: 8 products (causal: 12) of the size of the forward's 4; scratch holds the sums of every chunk.
void performer_backward(Device device, const PerformerBackward& args);

// Floats of `state`; q, k, v and the projection need not be set yet. The same on every device.
std::int64_t performer_state_floats(const PerformerInputs& inputs);

// Bytes of scratch that a call needs on this device with the current thread count.
std::int64_t performer_forward_scratch_bytes(Device device, const PerformerInputs& inputs);
std::int64_t performer_backward_scratch_bytes(Device device, const PerformerInputs& inputs);

extern KernelSlot<void(const PerformerForward&)> performer_forward_slot;
extern KernelSlot<void(const PerformerBackward&)> performer_backward_slot;
extern KernelSlot<std::int64_t(const PerformerInputs&)> performer_forward_scratch_slot;
extern KernelSlot<std::int64_t(const PerformerInputs&)> performer_backward_scratch_slot;

}  // namespace etc::sparse

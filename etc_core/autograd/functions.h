// The dense operators of ops/ as functions of variables on a tape. The attention operator is in
// autograd/attention.h.
//
// Every function computes its result at once; on a recording tape it also records a closure that takes the result's
// gradient, adds to the gradients of its inputs and parameters, and is destroyed with all it saved. A result whose
// gradient nobody wrote passes nothing on, and a parameter that no gradient reaches keeps an undefined `grad`.
// What must outlive the walk is held by the closures (shared pointers); parameters and packed weights must outlive it
// anyway.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"

namespace etc {

// Which rows of one side of a batch belong to which example.
struct RaggedRows {
  std::vector<std::int64_t> offsets;           // [B+1]
  std::vector<std::uint64_t> sample_ordinals;  // [B]; keys dropout
};

// One dropout site of hidden states (ops/dropout.h says which numbers it draws). The default is the identity.
struct Dropout {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;
  DropoutSite site = DropoutSite::head;
  std::shared_ptr<const RaggedRows> rows;  // needed when rate > 0

  ops::HiddenDropout arguments() const;
};

// A dense layer, or several that read the same input and write their results side by side.
struct Dense {
  struct Part {
    Parameter* kernel = nullptr;  // [in, out]; [out, in] with layout out_in
    Parameter* bias = nullptr;    // [out]; null: none
  };
  std::vector<Part> parts;
  ops::WeightLayout layout = ops::WeightLayout::in_out;
  ComputeType compute = ComputeType::fp32;  // of the kernels' products and of their gradients'; packed ones have theirs
  // All parts side by side, packed: read instead of the kernels by tapes that do not record.
  const ops::PackedWeights* packed = nullptr;
  const float* packed_bias = nullptr;

  std::int64_t in() const;
  std::int64_t out() const;  // of all parts together
};

// y = [x·W_0 + b_0 | x·W_1 + b_1 | …].   x [M, in] → y [M, out].   Saves x.
// type: of y; bf16 for results that only attention reads, where its row_type() says so. Where products read arrays of
// bf16 (keeps_bf16() in base/backend.h) x is rounded once for all of them (Var::rounded()), or is bf16 already, and that is
// what is saved.
Var linear(Tape& tape, const Var& x, const Dense& dense, ElementType type = ElementType::fp32);

// y = act(x), element by element. Saves x.
Var activation(Tape& tape, const Var& x, ops::Activation act);

// y = act(x·W1 + b1)·W2 + b2 (etc-core 6.3).   x [M, H] → y [M, H].
// Saves x and x·W1 + b1 [M, F]; the activation's result is computed again in backward rather than kept. Where products
// read arrays of bf16, all that is [M, F] is bf16.
Var feed_forward(Tape& tape, const Var& x, const Dense& first, ops::Activation act, const Dense& second);

struct LayerNormParameters {
  Parameter* gamma = nullptr;  // [H]
  Parameter* beta = nullptr;   // [H]
  ops::NormStatistics statistics = {};
  bool rounded = false;  // y is made in bf16 as well (Var::rounded()), for the products that read it
};

// y = (x − mean)·rstd·gamma + beta over the last axis.   x, y [M, H].   Saves x, mean, rstd.
Var layer_norm(Tape& tape, const Var& x, const LayerNormParameters& norm);
inline Var layer_norm(Tape& tape, const Var& x, Parameter& gamma, Parameter& beta) {
  return layer_norm(tape, x, {&gamma, &beta});
}

// y = layer_norm(x + dropout(branch)).   x, branch, y [M, H].   Saves the sum, mean, rstd.
Var residual_layer_norm(Tape& tape, const Var& x, const Var& branch, const LayerNormParameters& norm,
                        const Dropout& dropout);
inline Var residual_layer_norm(Tape& tape, const Var& x, const Var& branch, Parameter& gamma, Parameter& beta,
                               const Dropout& dropout) {
  return residual_layer_norm(tape, x, branch, {&gamma, &beta}, dropout);
}

// y = x + dropout(branch).   Saves nothing.
Var residual(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout);

// y = x + alpha·branch (ReZero), or with alpha [H] y_ij = x_ij + alpha_j·branch_ij (ADMIN).   x, branch, y [M, H].
// Saves branch.
Var scaled_residual(Tape& tape, const Var& x, const Var& branch, Parameter& alpha);

// y = x + factor·branch with a number nobody learns.   x, branch, y [M, H].   Saves nothing.
Var scaled_residual(Tape& tape, const Var& x, const Var& branch, float factor);

// y = dropout(x); with rate 0 y is x itself. Saves nothing.
Var dropout(Tape& tape, const Var& x, const Dropout& dropout);

// y_i = x[rows_i]: chosen rows of a matrix, such as the first of every example. x [M, H] → y [rows, H]. A row may be
// chosen several times; its gradients are added in the order of y. Saves the row numbers.
// Rules: throws Error on a row number outside x.
Var gather_rows(Tape& tape, const Var& x, std::vector<std::int64_t> rows);

// y = x_0 above x_1: the rows of both, in order.   x_0 [M_0, H], x_1 [M_1, H] → y [M_0 + M_1, H].   Saves nothing.
Var join_rows(Tape& tape, const Var& x_0, const Var& x_1);

// x in the memory of a device, x itself when it is there already: for what only the host has or computes, such as the
// loss of a few logits. Saves nothing.
Var on_device(Tape& tape, const Var& x, Device device);

// One table of an embedding sum; `ids` must be as many as there are rows.
struct Lookup {
  Parameter* table = nullptr;  // [rows, H]; null: absent
  std::shared_ptr<const std::vector<std::int32_t>> ids;
  const char* name = "";  // of the ids, for messages: "token_ids"
  Tensor fixed = {};      // [rows, H], of numbers that nobody learns, in place of the table
};

// What an embedding is the sum of; without base there are tokens, everything else may be absent.
struct EmbeddingSum {
  std::shared_ptr<const RaggedRows> rows;  // M of them
  std::int64_t width = 0;                  // H
  Var base = {};                           // [M, H]
  Lookup tokens = {}, segments = {}, positions = {};
  Var adder = {};  // [M, H]; may lie on another device
};

// e = base + tokens + segments + positions + adder (etc-core 3; rules for ids out of range: ops/embedding.h).
// Saves the ids.
Var embedding(Tape& tape, const EmbeddingSum& sum);

// Which run of a checkpointed stretch a function is called for.
enum class Pass { forward, recompute };

// Keeps only the inputs of a stretch of the computation: runs `now` without recording, and in backward `again` on a tape
// of its own which is then walked. Both compute the same bits from the inputs; they may use parameters, which get their
// gradients. Gradients of inputs that `again` does not use stay undefined. `now` is not kept after the call.
// On a tape that does not record this is `now` itself.
using Stretch = std::function<std::vector<Var>(Tape& tape, const std::vector<Var>& inputs)>;
std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs, const Stretch& now, Stretch again);

}  // namespace etc

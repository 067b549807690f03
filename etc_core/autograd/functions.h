// The dense operators of ops/ as functions of variables on a tape. The attention operator is in
// autograd/attention.h.
//
// Every function computes its result at once; on a recording tape it also records a closure that takes the result's
// gradient, adds to the gradients of its inputs and parameters, and is destroyed with all it saved. A result without a
// gradient passes nothing on, and a parameter that no gradient reaches keeps an undefined `grad`. Closures hold shared
// pointers to everything that backward needs; the caller must keep parameters and packed weights alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/ops/activation_kind.h"
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

// A dense layer, or several layers that read the same input and write their results side by side.
struct Dense {
  struct Part {
    Parameter* kernel = nullptr;  // [in, out]; [out, in] with layout out_in
    Parameter* bias = nullptr;    // [out]; null: none
  };
  std::vector<Part> parts;
  ops::WeightLayout layout = ops::WeightLayout::in_out;
  ComputeType compute = ComputeType::fp32;  // of the kernels' products and their gradients; `packed` has its own type
  // All parts side by side, packed: used instead of the kernels by tapes that do not record.
  const ops::PackedWeights* packed = nullptr;
  const float* packed_bias = nullptr;

  std::int64_t in() const;
  std::int64_t out() const;  // of all parts together
};

// y = [x·W_0 + b_0 | x·W_1 + b_1 | …].   x [M, in] → y [M, out].   Saves x.
// type: of y; bf16 for results that only attention reads, if its row_type() says so. Where products read bf16 arrays
// (keeps_bf16() in base/backend.h), x is bf16 already or is rounded once for all of them (Var::rounded()), and the bf16
// array is saved.
Var linear(Tape& tape, const Var& x, const Dense& dense, ElementType type = ElementType::fp32);

// y = act(x), element by element. Saves x.
Var activation(Tape& tape, const Var& x, ops::Activation act);

// y = act(x·W1 + b1)·W2 + b2 (etc-core 6.3).   x [M, H] → y [M, H].
// Saves x and x·W1 + b1 [M, F]; the activation's result is computed again in backward instead of kept. Where products
// read bf16 arrays, all [M, F] tensors are bf16.
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

// y = x + factor·branch with a constant factor.   x, branch, y [M, H].   Saves nothing.
Var scaled_residual(Tape& tape, const Var& x, const Var& branch, float factor);

// y = dropout(x); with rate 0 y is x itself. Saves nothing.
Var dropout(Tape& tape, const Var& x, const Dropout& dropout);

// y_i = x[rows_i]: chosen rows of a matrix, such as the first of every example. x [M, H] → y [rows, H]. A row may be
// chosen several times; its gradients are added in the order of y. Saves the row numbers.
// Rules: throws Error on a row number outside x.
Var gather_rows(Tape& tape, const Var& x, std::vector<std::int64_t> rows);

// y = x_0 above x_1: the rows of both, in order.   x_0 [M_0, H], x_1 [M_1, H] → y [M_0 + M_1, H].   Saves nothing.
// Rules: in fp32 or bf16; throws Error if the widths or the number types differ.
Var join_rows(Tape& tape, const Var& x_0, const Var& x_1);

// y = rows first … first + count - 1 of x.   x [M, H] → y [count, H].   Saves nothing.
// Rules: in fp32 or bf16; throws Error on rows outside x.
Var row_range(Tape& tape, const Var& x, std::int64_t first, std::int64_t count);

// y: the numbers of x in another shape.   x, y: as many numbers.   Saves nothing.
Var reshaped(Tape& tape, const Var& x, std::vector<std::int64_t> shape);

// x in the memory of a device, or x itself when it is there already: for data or functions that exist only on the host,
// such as the loss of a few logits. Saves nothing.
Var on_device(Tape& tape, const Var& x, Device device);

// One table of an embedding sum, with one id per row.
struct Lookup {
  Parameter* table = nullptr;  // [rows, H]; null: absent
  std::shared_ptr<const std::vector<std::int32_t>> ids;
  const char* name = "";  // of the ids, for messages: "token_ids"
  Tensor fixed = {};      // [rows, H], constant numbers instead of the table
};

// The terms of an embedding sum. Either base or tokens must be given; all other terms are optional.
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

// Whether a function of a checkpointed section is called for the forward pass or for the recomputation.
enum class Pass { forward, recompute };

// Activation checkpointing: keeps only the inputs of a section of the computation. Runs `now` without recording; in
// backward, runs `again` on a separate tape and then that tape's backward pass. Both must compute the same bits from
// the inputs; they may use parameters, which get their gradients. Gradients of inputs that `again` does not use stay
// undefined. `now` is not kept after the call. On a tape that does not record, only `now` is run.
using Section = std::function<std::vector<Var>(Tape& tape, const std::vector<Var>& inputs)>;
std::vector<Var> checkpoint(Tape& tape, const std::vector<Var>& inputs, const Section& now, Section again);

}  // namespace etc

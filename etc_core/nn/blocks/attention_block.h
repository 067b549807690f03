// The attention of one kind of queries: projections, operator, output projection. It knows nothing of the model: which
// projections there are and what keys they become, which operator and which tables, the model says.
#pragma once

#include <vector>

#include "etc_core/nn/blocks/forward_context.h"

namespace etc {

struct AttentionBlock {
  std::vector<Dense::Part> projections;  // [H, A] each, of the same tokens: queries, keys, values in the model's order
  Dense output;                          // [A, H]
  RelativeParameters relative;           // [R, N, D] and [R, N], of the queries

  Dense all_projections() const;                                                          // side by side: [H, count·A]
  std::int64_t projection_width() const { return projections.front().kernel->shape[1]; }  // A

  // Every projection of x [M, H], in order, [M, A] each. In inference one product gives all columns; in training every
  // projection is a variable of its own, so that one without a gradient (keys that no loss reads) leaves its parameters
  // alone. type: as the attention operators read them (row_type() in autograd/attention.h).
  std::vector<Columns> project(Tape& tape, const Var& x, const ForwardContext& context,
                               ElementType type = ElementType::fp32) const;
  // The same from a product with all_projections(), [M, count·A].
  std::vector<Columns> columns_of(const Var& product) const;

  // y = a·W + b with the output projection.   a [M, A] → y [M, H]
  Var project_out(Tape& tape, const Var& attended, const ForwardContext& context) const;

  // Every dense layer as inference runs it, for packing ahead.
  std::vector<Dense> dense_layers() const { return {all_projections(), output}; }
  bool same_output(const AttentionBlock& other) const { return output.parts[0].kernel == other.output.parts[0].kernel; }
};

}  // namespace etc

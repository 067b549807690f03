// The attention of one kind of queries: projections, operator, output projection. The block is independent of the
// model, which chooses the projections, the keys they form, the operator and the tables.
#pragma once

#include <vector>

#include "etc_core/nn/blocks/forward_context.h"

namespace etc {

struct AttentionBlock {
  std::vector<Dense::Part> projections;  // [H, A] each, of the same tokens: queries, keys, values in the model's order
  Dense output;                          // [A, H]
  RelativeParameters relative;           // [R, N, D] and [R, N], for the queries

  Dense all_projections() const;                                                          // side by side: [H, count·A]
  std::int64_t projection_width() const { return projections.front().kernel->shape[1]; }  // A

  // Every projection of x [M, H], in order, [M, A] each. In inference one product gives all columns. In training every
  // projection is a separate variable, so that one without a gradient (keys that no loss depends on) does not change
  // its parameters. type: as read by the attention operators (row_type() in autograd/attention.h).
  std::vector<Columns> project(Tape& tape, const Var& x, const ForwardContext& context,
                               ElementType type = ElementType::fp32) const;
  // The same from a product with all_projections(), [M, count·A].
  std::vector<Columns> columns_of(const Var& product) const;

  // y = a·W + b with the output projection.   a [M, A] → y [M, H]
  Var project_out(Tape& tape, const Var& attended, const ForwardContext& context) const;

  // Every dense layer as inference runs it, so that it can be packed in advance.
  std::vector<Dense> dense_layers() const { return {all_projections(), output}; }
  bool same_output(const AttentionBlock& other) const { return output.parts[0].kernel == other.output.parts[0].kernel; }
};

}  // namespace etc

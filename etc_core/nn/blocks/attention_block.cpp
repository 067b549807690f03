#include "etc_core/nn/blocks/attention_block.h"

namespace etc {

Dense AttentionBlock::all_projections() const {
  Dense dense;
  dense.parts = projections;
  return dense;
}

std::vector<Columns> AttentionBlock::project(Tape& tape, const Var& x, const ForwardContext& context,
                                             ElementType type) const {
  if (context.packed != nullptr) return columns_of(linear(tape, x, context.dense(all_projections()), type));
  std::vector<Columns> columns;
  for (const Dense::Part& part : projections) {
    columns.push_back({linear(tape, x, context.dense(single(part)), type), 0});
  }
  return columns;
}

std::vector<Columns> AttentionBlock::columns_of(const Var& product) const {
  std::vector<Columns> columns;  // a variable and its first column
  for (std::size_t i = 0; i < projections.size(); ++i) {
    columns.push_back({product, static_cast<std::int64_t>(i) * projection_width()});
  }
  return columns;
}

Var AttentionBlock::project_out(Tape& tape, const Var& attended, const ForwardContext& context) const {
  return linear(tape, attended, context.dense(output));
}

}  // namespace etc

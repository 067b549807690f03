#include "etc_core/nn/blocks/embedding_block.h"

#include "etc_core/nn/counted_positions.h"

namespace etc {

namespace {

using Ids = std::shared_ptr<const std::vector<std::int32_t>>;

// The given ids, or a list of default ids if the list is missing.
Ids ids_or(const std::vector<std::int32_t>& ids, std::int64_t count, std::int32_t missing) {
  if (!ids.empty() || count == 0) return std::make_shared<const std::vector<std::int32_t>>(ids);
  return std::make_shared<const std::vector<std::int32_t>>(static_cast<std::size_t>(count), missing);
}

}  // namespace

Var EmbeddingBlock::forward(Tape& tape, const EmbeddedTokens& input, const ForwardContext& context,
                            const Dropout& dropped) const {
  const std::int64_t count = input.rows->offsets.back();  // M
  const Lookup token_rows{tokens, ids_or(input.token_ids, count, 0), input.names[0]};
  Lookup segment_rows, position_rows;
  if (segments != nullptr) {
    segment_rows = {segments, ids_or(input.segment_ids, count, input.missing_segment), input.names[1]};
  }
  if (positions != nullptr || sinusoids) {
    const std::vector<std::int32_t>& given = input.position_ids;
    position_rows = {positions,
                     std::make_shared<const std::vector<std::int32_t>>(
                         given.empty() ? counted_positions<std::int32_t>(input.rows->offsets) : given),
                     input.names[2]};
    if (sinusoids) position_rows.fixed = sinusoids.on(tokens->value.device());
  }
  EmbeddingSum sum{.rows = input.rows,
                   .width = hidden,
                   .tokens = token_rows,
                   .segments = segment_rows,
                   .positions = position_rows,
                   .adder = input.adder};
  if (!projection.parts.empty()) {
    const Var narrow =
        embedding(tape, {.rows = input.rows, .width = tokens->shape[1], .tokens = token_rows});  // [M, E]
    sum.base = linear(tape, narrow, context.dense(projection));                                  // [M, H]
    sum.tokens = {};
  }
  const Var e = embedding(tape, sum);  // [M, H]
  if (norm.gamma == nullptr) return etc::dropout(tape, e, dropped);
  const Var normed = layer_norm(tape, e, dropped.rate > 0 ? norm : context.norm(norm));  // [M, H]
  return etc::dropout(tape, normed, dropped);
}

}  // namespace etc

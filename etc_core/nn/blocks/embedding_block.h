// The embedding stage of one kind of tokens: token, segment and position rows, layer norm, dropout (etc-core 3).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/fixed_table.h"

namespace etc {

// The ids of one kind of tokens of a batch, M of them.
struct EmbeddedTokens {
  std::shared_ptr<const RaggedRows> rows;  // assigns rows to examples
  const std::vector<std::int32_t>& token_ids;
  const std::vector<std::int32_t>& segment_ids;   // empty: all missing_segment
  const std::vector<std::int32_t>& position_ids;  // empty: 0, 1, 2, … in each example
  const Var& adder;                               // [M, H]; undefined: none
  std::int32_t missing_segment = 0;
  const char* names[3] = {"token_ids", "segment_ids", "position_ids"};  // for messages
};

struct EmbeddingBlock {
  std::int64_t hidden = 0;         // H
  Parameter* tokens = nullptr;     // [V, E]
  Dense projection;                // [E, H]; no parts when E = H
  Parameter* segments = nullptr;   // [V_s, H]; null: none
  Parameter* positions = nullptr;  // [P, H]; null: none learned
  FixedTable sinusoids;            // [P, H], used instead of learned positions
  LayerNormParameters norm;        // [H]; null: none

  // dropout(layer_norm(token + segment + position + adder)) → [M, H]
  Var forward(Tape& tape, const EmbeddedTokens& input, const ForwardContext& context, const Dropout& dropout) const;
};

}  // namespace etc

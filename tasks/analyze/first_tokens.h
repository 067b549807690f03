// The attention probabilities between the first tokens of one example in the first layer, for a plot (analysis 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

inline constexpr std::int64_t kFirstTokens = 50;

struct FirstTokens {
  std::string op;                 // "self" or "long"; "": none
  std::int64_t tokens = 0;        // kFirstTokens, or the length of a shorter example
  std::vector<double> attention;  // [tokens, tokens]: query, key; mean over heads
};

// The bytes that this pass keeps for an example with this number of tokens.
std::int64_t first_tokens_bytes(std::int64_t heads, std::int64_t tokens);

// Runs a pass over this one example. Each query keeps its keys with the largest probabilities, at least kFirstTokens and as
// many as fit in 16 MB; the others count as 0. Throws Error like the encoder.
FirstTokens first_tokens_of(const FedEncoder& fed, const data::LoadedExample& example);

}  // namespace etc::analyze

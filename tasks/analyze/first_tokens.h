// Whom the first tokens of one example attend to in the first layer: what a picture of probabilities shows (analysis 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

inline constexpr std::int64_t kFirstTokens = 50;

struct FirstTokens {
  std::string op;                 // "self" or "long"; "": none
  std::int64_t tokens = 0;        // kFirstTokens, or all of a shorter example
  std::vector<double> attention;  // [tokens, tokens]: query, key; mean over heads
};

// What such a pass keeps of an example of so many tokens, in bytes.
std::int64_t first_tokens_bytes(std::int64_t heads, std::int64_t tokens);

// A pass over this one example. Of a query's keys the largest are kept, kFirstTokens or more, as 16 MB hold: smaller
// probabilities count as 0. Throws Error as the encoder does.
FirstTokens first_tokens_of(const FedEncoder& fed, const data::LoadedExample& example);

}  // namespace etc::analyze

// The attention probabilities between the first tokens of one example in the first layer, for a plot (analysis 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/nn/encoder.h"

namespace etc::analyze {

inline constexpr std::int64_t kFirstTokens = 50;

struct FirstTokens {
  std::string op;                 // "self" or "long"; "": none
  std::int64_t tokens = 0;        // kFirstTokens, or the length of a shorter example
  std::vector<double> attention;  // [tokens, tokens]: query, key; mean over heads
};

// The bytes of the sums in which this pass gets the probabilities.
std::int64_t first_tokens_bytes(std::int64_t heads);

// Runs a pass over this input of one example. Throws Error like the encoder.
FirstTokens first_tokens_of(Encoder& encoder, Tape& tape, const EncoderInput& input);

}  // namespace etc::analyze

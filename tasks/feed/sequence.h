// Examples that are one sequence of tokens with segments, "CLS a SEP b SEP": a dense encoder reads the sequence alone,
// an ETC with additional global tokens.
#pragma once

#include <cstdint>
#include <limits>

#include "etc_core/base/fields.h"
#include "etc_core/nn/encoder_input.h"
#include "sparse/labels/builders.h"
#include "tasks/feed/features.h"

namespace etc::feed {

// The global tokens of such an example: a copy of each of its first tokens, as many as the task determines (the
// question, so that every token sees it), then one for each block of the remaining tokens.
struct SequenceGlobals {
  std::int64_t copied = 1;             // at least CLS
  std::int64_t tokens_per_block = 27;  // as the published fixed blocks (etc-core 8.2)
  std::int64_t block_id = 1;           // vocabulary id of a block's token, that of a sentence in pre-training
};

// Keys of section `task` for the above, as entries of a FieldList. Options: a struct that derives from SequenceGlobals.
template <typename Options>
FieldEntry<Options> tokens_per_block_entry() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  return {"tokens_per_block",
          &Options::tokens_per_block,
          "encoders with global tokens: long tokens per global token",
          {.least = 1, .most = kMost}};
}
template <typename Options>
FieldEntry<Options> block_id_entry() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  return {"block_id",
          &Options::block_id,
          "encoders with global tokens: vocabulary id of these global tokens",
          {.least = 0, .most = kMost}};
}

// Appends one more example to the input. Every long token is assigned to its copy or to its block.
sparse::AttentionStructure add_sequence(EncoderInput& input, const Numbers& token_ids, const Numbers& segment_ids,
                                        const SequenceGlobals& globals);

}  // namespace etc::feed

// Common part of WikiHop and HotpotQA: the features of task-wikihop 8.3 → encoder input.
#pragma once

#include <span>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "sparse/labels/builders.h"
#include "tasks/feed/features.h"
#include "tasks/task.h"

namespace etc::feed {

// Lengths of one example.
struct Sizes {
  std::int64_t length = 0;   // n_l
  std::int64_t globals = 0;  // n_g
};

// Throws Error (in the form given in features.h) when the common features of one example contradict each other or the
// model: different lengths on one side, ids beyond the vocabulary, sentences or paragraphs beyond n_g, a last
// breakpoint that is not 1.
Sizes check_multihop(const data::Example& example, const Examination& examination, const EncoderConfig& model);

// Additions of a task to the common structure of one example.
struct MultihopOptions {
  std::span<const std::int32_t> ignore_hard_g2l;  // [n_g] 1: sees every long token even with hard g2l
  std::span<const std::int32_t> linked_ids;       // [n_l] or empty
  bool flat_sequence = false;                     // no paragraphs, links or exemptions: one sequence
};
sparse::AttentionStructure multihop_structure(const data::Example& example, const MultihopOptions& options);

// Appends token and type ids of one more example to the batch.
void append_tokens(EncoderInput& input, const data::Example& example);

}  // namespace etc::feed

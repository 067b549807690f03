// Features of prepared HotpotQA examples → encoder input (task-hotpotqa 3, 8.3, 8.4).
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc::hotpotqa {

struct FeedOptions {
  bool flat_sequence = false;    // an ablation: no paragraphs, no exemption, one sequence
  bool global_attention = true;  // false: an ablation, GlobalAttention::read_out
};

// Throws Error "feed: <where>: example <id>: <feature>: …" when the features of one example contradict each other or
// the model: everything that tasks/feed/multihop.h checks, CLS tokens that differ, facts other than 0 or 1, paragraphs,
// labels and texts that do not fit the sequences.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Checks the examples, builds the batch and its labels. The global CLS token, the first, sees every long token even
// where the model's use_hard_g2l_mask restricts the others.
EncoderInput feed(Examples examples, const EncoderConfig& model, const FeedOptions& options, const std::string& where);

}  // namespace etc::hotpotqa

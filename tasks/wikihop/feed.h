// Features of prepared WikiHop examples → encoder input (task-wikihop 3, 8.3, 8.4).
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc::wikihop {

// Global token types (task-wikihop 2.5).
inline constexpr std::int64_t kQueryGlobalType = 5;
inline constexpr std::int64_t kCandidateGlobalType = 6;

struct FeedOptions {
  // Candidate and query globals see every long token even where the model's use_hard_g2l_mask restricts the others.
  bool candidate_ignore_hard_g2l = true;
  bool query_ignore_hard_g2l = true;
  bool enable_l2g_linking = true;  // mentions get the "belongs" label with their candidate
  bool flat_sequence = false;      // no paragraphs, links or exemptions: one sequence
  // false: an ablation that keeps local attention and its read-out. No long token sees a global one (l2g); a global token
  // sees itself alone (g2g) and the long tokens that belong to it (g2l). The head reads only candidates, which see their
  // own tokens in front of the query. Information therefore moves at most radius tokens per layer.
  bool global_attention = true;
};

// Throws Error "feed: <where>: example <id>: <feature>: …" when the features of one example contradict each other or
// the model: features of one class with different lengths, ids out of range, a last breakpoint other than 1, candidates
// that are not the first C global tokens, a label or links beyond C, token ids beyond the vocabulary.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Checks the examples, builds the batch and its labels.
EncoderInput feed(Examples examples, const EncoderConfig& model, const FeedOptions& options, const std::string& where);

// Number of candidates C and label (-1: none) of an example.
std::int64_t num_candidates(const data::Example& example);
std::int64_t label_id(const data::Example& example);

}  // namespace etc::wikihop

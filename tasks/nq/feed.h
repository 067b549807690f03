// Features of prepared Natural Questions windows → encoder input (task-nq 3, 8.3).
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc::nq {

// Throws Error (its form is in tasks/feed/features.h) when the features of one window contradict each other or the model:
// features of one side with different lengths, ids or labels out of range.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Checks the windows, builds the batch and its labels. Every token of a window sees every other, within the limits of
// radius and hard masks; a long token belongs to the global token of its candidate or question piece. With fixed blocks,
// tokens beyond the last block belong to none.
//   global_attention  false: an ablation. No long token sees a global one, so in each layer a token receives information
//                     only from tokens within the radius (the head reads long tokens only)
EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where);

}  // namespace etc::nq

// Features of prepared Natural Questions windows → encoder input (task-nq 3, 8.3).
#pragma once

#include <string>

#include "tasks/task.h"

namespace etc::nq {

// Throws Error (tasks/feed/features.h says its form) when the features of one window contradict each other or the
// model: lengths of one side that differ, ids or labels out of range.
void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where);

// Checks the windows, builds the batch and its labels: every token of a window sees every other, as far as radius and
// hard masks let it; a long token belongs to the global token of its candidate or question piece. With fixed blocks,
// tokens beyond the last block belong to none.
//   global_attention  false: an ablation. No long token sees a global one, so in each layer a token learns only of
//                     tokens within the radius (the head reads long tokens only)
EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where);

}  // namespace etc::nq

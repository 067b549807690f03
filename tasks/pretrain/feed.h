// Features of prepared pre-training examples → encoder input (pretraining 1.2, 2.2 – 2.4).
#pragma once

#include <string>

#include "tasks/pretrain/batch.h"

namespace etc::pretrain {

// Throws Error (its form is in tasks/feed/features.h) when the features of one example contradict each other, the model or
// the objective: ids or positions out of range, masks that do not increase, sentences that do not fill the text, no
// sentences although the objective hides some.
void check_example(const data::Example& example, const EncoderConfig& model, const Options& options,
                   const std::string& where);

// Builds the encoder input described by `batch`, which was made from the same, checked examples. A long token belongs to the
// global token of its sentence, the first token to none. Segments are 0 and 1 where there is a second text, else the
// encoder's own. Sentences that are separate examples keep the positions they have in their text; their dropout is keyed by
// (sample, sentence), with keys different from those of all samples.
EncoderInput feed(Examples examples, const Batch& batch, const EncoderConfig& model, const Options& options,
                  const Pieces& pieces);

}  // namespace etc::pretrain

// The features of a prepared Natural Questions data set: one example is one window of a document (task-nq 8.3).
#pragma once

#include "data/dataset.h"

namespace etc::nq {

// What `etc prepare` writes. With fixed blocks there are no candidates among the global tokens, and the features about
// them are absent. /gold holds the annotations, a row per document.
const data::Schema& schema(bool fixed_blocks);

// What the model, its training and its evaluation read: the features that both kinds of files have.
const data::Schema& model_schema();

}  // namespace etc::nq

// The features of a prepared Natural Questions data set: one example is one window of a document (task-nq 8.3).
#pragma once

#include "data/dataset.h"

namespace etc::nq {

// The schema that `etc prepare` writes. With fixed blocks the global tokens include no candidates, and the features about
// candidates are absent. /gold holds the annotations, a row per document.
const data::Schema& schema(bool fixed_blocks);

// The schema that training and evaluation read: the features that both kinds of files have.
const data::Schema& model_schema();

}  // namespace etc::nq

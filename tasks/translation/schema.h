// The features of a prepared translation data set (translation 1, 4).
#pragma once

#include "data/dataset.h"

namespace etc::translation {

//   id           the line's number in its file, from 1
//   source_ids   [S] pieces of the source sentence, then </s>
//   target_ids   [T] pieces of the target sentence, then </s>: the labels. Shifted right, with </s> in front, they are the
//                decoder's input (section 1). Empty: no target (split test without a target file)
//   reference    the raw target line, which BLEU compares with; "" in training data and without a target
// Lengths therefore include </s>, as in batches (section 5). The schema's two length classes are "source" and "target", so
// data::token_counts is S + T.
// The data set's preprocess_config holds "special_ids": {"bos", "pad", "eos", "unk"} (-1: not in the vocabulary).
const data::Schema& schema();

}  // namespace etc::translation

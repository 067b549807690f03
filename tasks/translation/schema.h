// The features of a prepared translation data set (translation 1, 4).
#pragma once

#include "data/dataset.h"

namespace etc::translation {

//   id           the line's number in its file, from 1
//   source_ids   [S] pieces of the source sentence and, last, </s>
//   target_ids   [T] pieces of the target sentence and, last, </s>: what is predicted. Shifted right with the </s> in
//                front it is the decoder's input (section 1). Empty: there is no target (split test without a target file)
//   reference    the raw target line, which BLEU compares with; "" in training data and where there is no target
// Lengths therefore count </s>, as batches do (section 5). The schema's two length classes are "source" and "target", so
// that data::token_counts is S + T.
// The data set's preprocess_config holds "special_ids": {"bos", "pad", "eos", "unk"} (-1: the vocabulary has none).
const data::Schema& schema();

}  // namespace etc::translation

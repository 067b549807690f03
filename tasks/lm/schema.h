// The features of a prepared data set of a language model: segments of texts, in the texts' order.
#pragma once

#include "data/dataset.h"

namespace etc::lm {

// A text of the pieces x_1 … x_N and the piece e that ends texts is read as e x_1 … x_N, and what is predicted after each
// is x_1 … x_N e. Segments are n of these each, one after the other; the last one of a text may be shorter.
//
//   id             "<text>:<segment>", both from 0; texts are numbered over all input files
//   record_index   the text
//   segment        its number in the text; 0: nothing is before it
//   token_ids      [n] the pieces that are read
//   next_id        the piece after the last of them: labels are token_ids[1] … token_ids[n-1], next_id
//   characters     of the raw text that the labels stand for. The characters of a line count where its last piece is a
//                  label; e stands for none
// A segment goes on where the example before it ends, unless its number is 0. The data set's preprocess_config holds
// "text_end", the id of e.
const data::Schema& schema();

}  // namespace etc::lm

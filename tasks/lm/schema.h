// The features of a prepared data set of a language model: segments of texts, in the texts' order.
#pragma once

#include "data/dataset.h"

namespace etc::lm {

// A text of the pieces x_1 … x_N is read as e x_1 … x_N, where the piece e ends texts; the pieces to be predicted after each
// are x_1 … x_N e. Consecutive segments have n of these each; the last one of a text may be shorter.
//
//   id             "<text>:<segment>", both from 0; texts are numbered over all input files
//   record_index   the text
//   segment        its number in the text; 0: the first one
//   token_ids      [n] the pieces that are read
//   next_id        the piece after the last of them: labels are token_ids[1] … token_ids[n-1], next_id
//   characters     number of characters of the raw text that the labels cover. The characters of a line count in the
//                  segment in which the line's last piece is a label; e covers none
// A segment continues the previous example, unless its number is 0. The data set's preprocess_config holds "text_end", the
// id of e.
const data::Schema& schema();

}  // namespace etc::lm

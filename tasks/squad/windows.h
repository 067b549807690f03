// From a question to the windows the model reads: word pieces, overlapping windows, targets (dense-transformer 5.2).
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "tasks/squad/prepare_config.h"
#include "tasks/squad/record.h"
#include "tasks/text/offset_text.h"

namespace etc::squad {

// Pieces [start, start + length) of a text.
struct Window {
  std::int64_t start = 0, length = 0;
  bool operator==(const Window&) const = default;
};

// Windows of at most `most` >= 1 pieces. Each starts min(stride, length of the previous window) pieces after the previous
// one; the last ends at the text's end. Without pieces there is no window. Throws Error for another `most`.
std::vector<Window> cut_windows(std::int64_t pieces, std::int64_t most, std::int64_t stride);

// For each piece, the window in which it has most context: the largest min(left, right) + 0.01·length among the windows
// that contain it, the first of equals.
std::vector<std::int64_t> best_windows(const std::vector<Window>& windows, std::int64_t pieces);

// The answer's pieces, first and last inclusive.
struct Target {
  bool answered = false;   // false: impossible, trained on position 0
  text::TokenSpan pieces;  // of the text
};

// Finds the target of a question for training. False, with a fault, when its answer cannot be used; the fault is a `drop`
// if the words at its position do not contain its text.
bool find_target(const Record& record, const text::OffsetText& context, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config, prepare::FaultList& faults, Target& target);

// The windows as examples of the schema, without record_index:
//   CLS, question pieces, SEP (segment 0), pieces of the window, SEP (segment 1)
// A question that is cut is a quiet fault. target: null if the data are not for training; a window that does not contain
// the whole answer has position 0 twice.
std::vector<data::Example> window_examples(const Record& record, const text::OffsetText& context,
                                           const data::Tokenizer& tokenizer, const PrepareConfig& config,
                                           const Target* target, prepare::FaultList& faults);

}  // namespace etc::squad

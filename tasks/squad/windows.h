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

// Windows of at most `most` >= 1 pieces, each `stride` behind the one before or, where that is shorter, its length; the
// last ends at the text's end. No piece: no window. Throws Error for another `most`.
std::vector<Window> cut_windows(std::int64_t pieces, std::int64_t most, std::int64_t stride);

// The window of each piece in which it has most context: the largest min(left, right) + 0.01·length of those that hold
// it, the first of equals.
std::vector<std::int64_t> best_windows(const std::vector<Window>& windows, std::int64_t pieces);

// The answer's pieces, both inclusive; nothing for one that is not there.
struct Target {
  bool answered = false;   // false: impossible, trained on position 0
  text::TokenSpan pieces;  // of the text
};

// Of a question to train on. False, with a fault, when its answer cannot be used; a `drop` where the words at its place
// do not hold its text.
bool find_target(const Record& record, const text::OffsetText& context, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config, prepare::FaultList& faults, Target& target);

// The windows as examples of the schema, without record_index:
//   CLS, question pieces, SEP (segment 0), pieces of the window, SEP (segment 1)
// target: null, nobody trains on them; a window that does not hold the whole answer has position 0 twice.
std::vector<data::Example> window_examples(const Record& record, const text::OffsetText& context,
                                           const data::Tokenizer& tokenizer, const PrepareConfig& config,
                                           const Target* target);

}  // namespace etc::squad

// From a record to the windows the model reads: word pieces, labels, global tokens (task-nq 2.2 – 2.8).
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "tasks/nq/prepare_config.h"
#include "tasks/nq/record.h"

namespace etc::nq {

enum class AnswerType : std::int64_t { unlabelled = -1, null = 0, yes = 1, no = 2, long_only = 3, short_span = 4 };

// The training target of a document: tokens [start, end) of its first annotation, -1 for none.
struct DocumentLabel {
  std::int64_t long_start = -1, long_end = -1;
  std::int64_t short_start = -1, short_end = -1;
  AnswerType type = AnswerType::unlabelled;
};
DocumentLabel label_of(const Record& record, const PrepareConfig& config);

// The text of all top-level candidates in pieces, one candidate after the other. Text outside the candidates is left out.
struct Document {
  std::vector<std::int64_t> question_ids;  // all pieces of the question
  std::vector<std::int64_t> ids;           // [N]
  std::vector<std::int64_t> candidate;     // [N] index among all candidates, nested ones included
  std::vector<std::int64_t> token_pos;     // [N] document token
  bool too_long = false;                   // more than kMostPieces: nothing more was added
};

// More than any real page has; a limit is needed because overlapping candidates can repeat the same text many times.
inline constexpr std::size_t kMostPieces = std::size_t{1} << 22;

Document tokenize(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config);

// The selected windows of a document, as examples of the schema, without `record_index`:
//   long    CLS, question pieces, SEP, document pieces, SEP      at most seq_len
//   global  CLS, one per question piece and for SEP, one per candidate in the window, one for the last SEP
// or, with fixed blocks, one global per block of long tokens.
struct Windows {
  std::vector<data::Example> examples;
  std::int64_t all = 0;       // windows of the document, selected or not
  bool global_full = false;   // some candidates share the last global token
  bool label_missing = true;  // the answer's first or last token is in no window
};
Windows cut_windows(const Record& record, const Document& document, const DocumentLabel& label,
                    const PrepareConfig& config);

// The annotations as a row of /gold.
data::Example gold_row(const Record& record);

}  // namespace etc::nq

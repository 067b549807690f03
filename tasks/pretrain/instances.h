// Selects the sentences of each instance: pairs of segments for MLM + NSP (pretraining 1.2), runs of sentences of one
// document for the other objectives (1.8, 2.2). Only lengths are used; the pieces themselves are not read.
#pragma once

#include <cstdint>
#include <functional>

#include "tasks/pretrain/draws.h"

namespace etc::pretrain {

// Documents, sentences and pieces of a tokenised text, each numbered from 0 over the whole text. No document and no
// sentence is empty.
class TextIndex {
 public:
  struct Document {
    std::int64_t first_sentence = 0;
    std::int64_t sentences = 0;
  };

  virtual ~TextIndex() = default;
  virtual std::int64_t documents() const = 0;
  virtual Document document(std::int64_t number) = 0;
  // The first piece of a sentence; for the index after the last sentence, the number of pieces.
  virtual std::int64_t first_piece(std::int64_t sentence) = 0;
};

// A contiguous range of the text's pieces.
struct PieceRange {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

// Written to a file as its bytes in memory.
struct Instance {
  std::int64_t copy = 0;  // copy of the text; each copy has different draws
  std::int64_t document = 0;
  std::int64_t number = 0;  // among the document's instances
  PieceRange a;             // `[CLS] A [SEP]`, without the special pieces
  PieceRange b;             // `B [SEP]`; empty: one segment
  std::int64_t random_next = -1;
  std::int64_t first_sentence = 0;  // of a run of sentences; not used for pairs, whose sentences may be cut
  std::int64_t sentences = 0;       // 0: a pair
};

using TakeInstance = std::function<void(const Instance&)>;

struct PairRules {
  std::int64_t max_seq_length = 128;
  double short_seq_prob = 0.1;
};

// The pairs of one document, in order. Draws: one for the target length of the document (two for a short one); then for each
// instance the end of A, whether B is random, the document and sentence at which B begins, and one for each piece cut off.
// `take` may draw from the same source (for masks, as in the published code).
//   document  0 … text.documents() − 1
void pair_instances(TextIndex& text, std::int64_t document, const PairRules& rules, Draws& draws,
                    const TakeInstance& take);

struct RunRules {
  std::int64_t max_pieces = 126;     // of all sentences together
  std::int64_t max_sentences = 256;  // of one run
  std::int64_t least_sentences = 1;  // shorter runs are left out
};

// Divides the document's sentences, in order, into runs as long as the limits allow; the next run begins at the sentence
// that did not fit. Returns the number of runs left out. Every sentence must have at most max_pieces.
std::int64_t run_instances(TextIndex& text, std::int64_t document, const RunRules& rules, const TakeInstance& take);

}  // namespace etc::pretrain

// Where a search keeps what its hypotheses have read: in rows of one matrix, every hypothesis in a slot of its own with room
// for more (translation 8). Numbers only; the matrices are whose they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc {

// A hypothesis of a search, and what it reads next.
struct HypothesisStep {
  std::int64_t sentence = 0;  // whose source it sees
  std::int64_t parent =
      -1;                  // the hypothesis it goes on from, by its place in the step before; -1: none, the first step
  std::int32_t token = 0;  // </s> first, then what was chosen last
};

// What to do before the new row of each hypothesis is written behind what it has read.
struct RowPlacement {
  struct Copy {
    std::int64_t from = 0, to = 0, rows = 0;
  };
  std::int64_t rows = 0;   // of the matrix
  bool elsewhere = false;  // a new matrix: copies go there from the one before; else they stay within it
  std::vector<Copy> copies;
  std::vector<std::int64_t> order;  // hypotheses by their slots; what follows is of them in this order
  std::vector<std::int64_t> first;  // row of the slot
  std::vector<std::int64_t> read;   // rows so far, without the new one
};

// A hypothesis goes on in its parent's slot; only a second and further one of the same parent copies what that has read.
// Slots of a sentence are neighbours, sentences ascend. The matrix is laid out anew, and everything copied, when slots
// are full (they get twice as long), when a sentence has more hypotheses than slots, and when half of the sentences
// have ended.
class HypothesisRows {
 public:
  // Hypotheses of a sentence are neighbours, sentences ascend, parents are hypotheses of the last call.
  // Cost: O(hypotheses·log), beside the copies.
  RowPlacement place(std::span<const HypothesisStep> hypotheses);

  // Of the hypotheses of the last call.
  std::int64_t count() const { return static_cast<std::int64_t>(sentences_.size()); }
  std::int64_t sentence_of(std::int64_t hypothesis) const { return sentences_[static_cast<std::size_t>(hypothesis)]; }

 private:
  struct Needs {
    std::int64_t sentences = 0, slots = 0, rows = 0;  // of a sentence, of a slot
    bool unknown = false;                             // a sentence has no region yet
  };

  Needs needs(std::span<const HypothesisStep> hypotheses) const;
  std::int64_t read_by(const HypothesisStep& hypothesis) const;
  void lay_out(std::span<const HypothesisStep> hypotheses, const Needs& needs, RowPlacement& placement);
  void go_on(std::span<const HypothesisStep> hypotheses, RowPlacement& placement);
  std::int64_t region_row(std::int64_t sentence) const;

  std::int64_t capacity_ = 8;            // rows of a slot
  std::int64_t slots_ = 0;               // of a sentence
  std::int64_t region_count_ = 0;        // sentences with slots
  std::vector<std::int64_t> regions_;    // of each sentence; -1: none
  std::vector<std::int64_t> sentences_;  // of the hypotheses of the last call
  std::vector<std::int64_t> firsts_;     // rows of their slots
  std::vector<std::int64_t> reads_;      // rows they have
};

}  // namespace etc

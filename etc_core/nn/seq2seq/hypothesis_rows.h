// Row management for the keys and values of a beam search: all hypotheses are stored in the rows of one matrix, each in
// its own slot with room to grow (translation 8). This class computes only row numbers; the caller owns the matrices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace etc {

// A hypothesis of a beam search, and the token it reads next.
struct HypothesisStep {
  std::int64_t sentence = 0;  // the sentence whose source it sees
  std::int64_t parent =
      -1;                  // the hypothesis it extends, by its index in the previous step; -1: none, in the first step
  std::int32_t token = 0;  // </s> first, then the token chosen last
};

// The copies to make before the new row of each hypothesis is appended to its slot.
struct RowPlacement {
  struct Copy {
    std::int64_t from = 0, to = 0, rows = 0;
  };
  std::int64_t rows = 0;   // of the matrix
  bool elsewhere = false;  // true: copy from the old matrix to a new one; false: copy within the matrix
  std::vector<Copy> copies;
  std::vector<std::int64_t> order;  // hypotheses by their slots; first and read are in this order
  std::vector<std::int64_t> first;  // first row of the slot
  std::vector<std::int64_t> read;   // rows so far, without the new row
};

// The first hypothesis of a parent continues in its slot; further ones copy the parent's rows to another slot. The
// slots of a sentence are adjacent and sentences are in ascending order. A new layout, which copies everything, is made
// when slots are full (their length is doubled), when a sentence has more hypotheses than slots, and when half of the
// sentences have ended.
class HypothesisRows {
 public:
  // Hypotheses of a sentence must be adjacent, sentences in ascending order, and parents hypotheses of the last call.
  // Cost: O(hypotheses·log), without the copies.
  RowPlacement place(std::span<const HypothesisStep> hypotheses);

  // These refer to the hypotheses of the last call.
  std::int64_t count() const { return static_cast<std::int64_t>(sentences_.size()); }
  std::int64_t sentence_of(std::int64_t hypothesis) const { return sentences_[static_cast<std::size_t>(hypothesis)]; }

 private:
  struct Needs {
    std::int64_t sentences = 0, slots = 0, rows = 0;  // slots per sentence, rows per slot
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
  std::vector<std::int64_t> regions_;    // region of each sentence; -1: none
  std::vector<std::int64_t> sentences_;  // of the hypotheses of the last call
  std::vector<std::int64_t> firsts_;     // first rows of their slots
  std::vector<std::int64_t> reads_;      // number of rows they have
};

}  // namespace etc

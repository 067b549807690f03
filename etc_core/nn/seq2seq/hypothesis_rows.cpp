#include "etc_core/nn/seq2seq/hypothesis_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace etc {

std::int64_t HypothesisRows::read_by(const HypothesisStep& hypothesis) const {
  return hypothesis.parent < 0 ? 0 : reads_[static_cast<std::size_t>(hypothesis.parent)];
}

std::int64_t HypothesisRows::region_row(std::int64_t sentence) const {
  return regions_[static_cast<std::size_t>(sentence)] * slots_ * capacity_;
}

HypothesisRows::Needs HypothesisRows::needs(std::span<const HypothesisStep> hypotheses) const {
  Needs needs;
  std::int64_t of_sentence = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const HypothesisStep& own = hypotheses[i];
    const bool begins = i == 0 || hypotheses[i - 1].sentence != own.sentence;
    if (begins) ++needs.sentences;
    of_sentence = begins ? 1 : of_sentence + 1;
    needs.slots = std::max(needs.slots, of_sentence);
    needs.rows = std::max(needs.rows, read_by(own) + 1);
    if (own.sentence >= std::ssize(regions_) || regions_[static_cast<std::size_t>(own.sentence)] < 0) {
      needs.unknown = true;
    }
  }
  return needs;
}

// Places every hypothesis in the next slot of its sentence.
void HypothesisRows::lay_out(std::span<const HypothesisStep> hypotheses, const Needs& needs, RowPlacement& placement) {
  while (capacity_ < needs.rows) capacity_ *= 2;
  slots_ = std::max(slots_, needs.slots);
  regions_.clear();
  region_count_ = 0;
  placement.elsewhere = true;
  std::int64_t slot = 0;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const HypothesisStep& own = hypotheses[i];
    if (i == 0 || hypotheses[i - 1].sentence != own.sentence) {
      regions_.resize(static_cast<std::size_t>(own.sentence) + 1, -1);
      regions_.back() = region_count_++;
      slot = 0;
    }
    placement.first.push_back(region_row(own.sentence) + slot++ * capacity_);
    const std::int64_t rows = read_by(own);
    if (rows > 0) {
      placement.copies.push_back({firsts_[static_cast<std::size_t>(own.parent)], placement.first.back(), rows});
    }
  }
}

void HypothesisRows::go_on(std::span<const HypothesisStep> hypotheses, RowPlacement& placement) {
  constexpr std::int64_t kNowhere = -1;
  std::vector<bool> kept(sentences_.size(), false);  // slots of the parents
  for (const HypothesisStep& own : hypotheses) {
    const auto parent = static_cast<std::size_t>(own.parent);
    const bool goes_on = own.parent >= 0 && !kept[parent];
    placement.first.push_back(goes_on ? firsts_[parent] : kNowhere);
    if (goes_on) kept[parent] = true;
  }
  // The others get the free slots of their sentence.
  for (std::size_t begin = 0; begin < hypotheses.size();) {
    std::size_t end = begin;
    while (end < hypotheses.size() && hypotheses[end].sentence == hypotheses[begin].sentence) ++end;
    std::int64_t next = region_row(hypotheses[begin].sentence);
    const auto taken = [&](std::int64_t row) {
      return std::find(placement.first.begin() + static_cast<std::ptrdiff_t>(begin),
                       placement.first.begin() + static_cast<std::ptrdiff_t>(end),
                       row) != placement.first.begin() + static_cast<std::ptrdiff_t>(end);
    };
    for (std::size_t i = begin; i < end; ++i) {
      if (placement.first[i] != kNowhere) continue;
      while (taken(next)) next += capacity_;
      placement.first[i] = next;
      const std::int64_t rows = read_by(hypotheses[i]);
      if (rows > 0) placement.copies.push_back({firsts_[static_cast<std::size_t>(hypotheses[i].parent)], next, rows});
    }
    begin = end;
  }
}

RowPlacement HypothesisRows::place(std::span<const HypothesisStep> hypotheses) {
  RowPlacement placement;
  const Needs needs = this->needs(hypotheses);
  const bool half_ended = 2 * needs.sentences <= region_count_;
  if (needs.rows > capacity_ || needs.slots > slots_ || needs.unknown || half_ended) {
    lay_out(hypotheses, needs, placement);
  } else {
    go_on(hypotheses, placement);
  }
  placement.rows = region_count_ * slots_ * capacity_;
  std::vector<std::int64_t> sentences, reads;
  for (const HypothesisStep& own : hypotheses) {
    sentences.push_back(own.sentence);
    reads.push_back(read_by(own) + 1);
  }
  sentences_ = std::move(sentences);
  reads_ = std::move(reads);
  firsts_ = placement.first;
  placement.order.resize(hypotheses.size());
  std::iota(placement.order.begin(), placement.order.end(), 0);
  std::ranges::sort(placement.order, {}, [&](std::int64_t i) { return firsts_[static_cast<std::size_t>(i)]; });
  for (std::size_t r = 0; r < hypotheses.size(); ++r) {
    const auto i = static_cast<std::size_t>(placement.order[r]);
    placement.first[r] = firsts_[i];
    placement.read.push_back(reads_[i] - 1);
  }
  return placement;
}

}  // namespace etc

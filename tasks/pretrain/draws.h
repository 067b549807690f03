// Random choices of pre-training data, one after the other: from a counter-based generator, or written down for a test.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/base/random.h"

namespace etc::pretrain {

// The order of the calls is part of what a function that draws does (pretraining 1.2, 1.3), so that equal answers give
// equal results.
class Draws {
 public:
  virtual ~Draws() = default;

  virtual double uniform() = 0;  // in [0, 1)

  // low … high, both included; low <= high.
  virtual std::int64_t between(std::int64_t low, std::int64_t high) = 0;

  // A random order of 0 … count−1: begin_order(), then next_in_order() up to `count` times for its first, second, …
  // entry. What is not asked for need not be drawn. Other draws may stand between.
  virtual void begin_order(std::int64_t count) = 0;
  virtual std::int64_t next_in_order() = 0;

  // What uniform() and between() give next belongs to this position of a sequence, whatever was drawn before.
  virtual void at_position(std::int64_t /*position*/) {}
};

// Draws that are pure functions of a key and of the calls so far.
//   uniform(), between()  Philox counter (block, position + 1 or 0 before at_position(), 0, 0); one word, two words
//   orders                Philox counter (block, orders begun, 1, 0): Fisher-Yates from the front, two words an entry
class CounterDraws final : public Draws {
 public:
  explicit CounterDraws(std::uint64_t key) : key_(key) {}

  double uniform() override;
  std::int64_t between(std::int64_t low, std::int64_t high) override;
  void begin_order(std::int64_t count) override;
  std::int64_t next_in_order() override;
  void at_position(std::int64_t position) override;

 private:
  struct Stream {
    Philox4 counter{};
    Philox4 words{};
    std::size_t used = 4;  // of words
  };
  std::uint64_t word(Stream& stream) const;
  std::int64_t below(Stream& stream, std::int64_t count) const;

  std::uint64_t key_;
  Stream plain_, ordering_;
  std::uint32_t orders_ = 0;
  std::vector<std::int64_t> order_;  // its first next_ entries are given out
  std::size_t next_ = 0;
};

// The key of what is drawn for one example in one copy of the data, or in one epoch.
constexpr std::uint64_t draws_key(std::uint64_t seed, std::uint64_t copy_or_epoch, std::uint64_t example) {
  return mix_key(mix_key(seed, copy_or_epoch), example);
}

}  // namespace etc::pretrain

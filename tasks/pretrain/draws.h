// A sequence of random draws for pre-training data: from a counter-based generator, or prescribed by a test.
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/base/random.h"

namespace etc::pretrain {

// The order of calls is part of the contract of every function that draws (pretraining 1.2, 1.3), so that equal draws give
// equal results.
class Draws {
 public:
  virtual ~Draws() = default;

  virtual double uniform() = 0;  // in [0, 1)

  // low … high, both included; low <= high.
  virtual std::int64_t between(std::int64_t low, std::int64_t high) = 0;

  // A random order of 0 … count−1: begin_order(), then next_in_order() up to `count` times for its first, second, …
  // entry. Entries that are not requested need not be drawn. Other draws may come in between.
  virtual void begin_order(std::int64_t count) = 0;
  virtual std::int64_t next_in_order() = 0;

  // Makes the next results of uniform() and between() a function of this position of a sequence, independent of earlier
  // draws.
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
    std::size_t used = 4;  // words consumed
  };
  std::uint64_t word(Stream& stream) const;
  std::int64_t below(Stream& stream, std::int64_t count) const;

  std::uint64_t key_;
  Stream plain_, ordering_;
  std::uint32_t orders_ = 0;
  std::vector<std::int64_t> order_;  // the first next_ entries have been returned
  std::size_t next_ = 0;
};

// The key of the draws for one example in one copy of the data, or in one epoch.
constexpr std::uint64_t draws_key(std::uint64_t seed, std::uint64_t copy_or_epoch, std::uint64_t example) {
  return mix_key(mix_key(seed, copy_or_epoch), example);
}

}  // namespace etc::pretrain

#include "tasks/pretrain/draws.h"

#include <numeric>
#include <utility>

namespace etc::pretrain {

std::uint64_t CounterDraws::word(Stream& stream) const {
  if (stream.used == stream.words.size()) {
    stream.words = philox(stream.counter, key_);
    ++stream.counter[0];
    stream.used = 0;
  }
  return stream.words[stream.used++];
}

// The upper half of (64 random bits · count); deviates from uniform by at most count / 2^64.
std::int64_t CounterDraws::below(Stream& stream, std::int64_t count) const {
  const std::uint64_t high = word(stream), low = word(stream), n = static_cast<std::uint64_t>(count);
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>((Wide{high << 32 | low} * n) >> 64));
}

double CounterDraws::uniform() {
  return static_cast<double>(word(plain_)) * 0x1p-32;
}

std::int64_t CounterDraws::between(std::int64_t low, std::int64_t high) {
  return low + below(plain_, high - low + 1);
}

void CounterDraws::begin_order(std::int64_t count) {
  ordering_ = {.counter = {0, orders_++, 1, 0}};
  order_.resize(static_cast<std::size_t>(count));
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  next_ = 0;
}

std::int64_t CounterDraws::next_in_order() {
  const auto rest = static_cast<std::int64_t>(order_.size() - next_);
  std::swap(order_[next_], order_[next_ + static_cast<std::size_t>(below(ordering_, rest))]);
  return order_[next_++];
}

void CounterDraws::at_position(std::int64_t position) {
  plain_ = {.counter = {0, static_cast<std::uint32_t>(position) + 1, 0, 0}};
}

}  // namespace etc::pretrain

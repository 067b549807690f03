// A random order of any number of elements in constant memory, unlike a shuffled array of indices.
#pragma once

#include <cstdint>

#include "etc_core/base/random.h"

namespace etc::pretrain {

// A permutation of 0 … count−1: a Feistel network (Luby and Rackoff, "How to Construct Pseudorandom Permutations from
// Pseudorandom Functions", 1988) on the next power of four, with cycle walking: it is applied again until the result is
// below count (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), on average at most four times.
class RandomOrder {
 public:
  RandomOrder(std::int64_t count, std::uint64_t key) : count_(static_cast<std::uint64_t>(count)), key_(key) {
    while ((std::uint64_t{1} << 2 * half_bits_) < count_) ++half_bits_;
  }

  // 0 <= place < count.
  std::int64_t at(std::int64_t place) const {
    auto x = static_cast<std::uint64_t>(place);
    do {
      x = shuffled(x);
    } while (x >= count_);
    return static_cast<std::int64_t>(x);
  }

 private:
  static constexpr std::uint64_t kRounds = 8;

  std::uint64_t shuffled(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (mix_key(mix_key(key_, round), right) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t count_, key_;
  int half_bits_ = 1;
};

}  // namespace etc::pretrain

// Long arrays cut into blocks of a fixed size: the partition of every loop of this folder, and the order of its sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace etc {

// 64 kB of each array: a few of them fit the second-level cache.
inline constexpr std::int64_t kBlockSize = 16384;

// Numbers [first, first + count) of one of several arrays.
struct Block {
  std::size_t array;
  std::int64_t first, count;
};

// All blocks of all arrays, in order.
std::vector<Block> blocks_of(std::span<const std::int64_t> sizes);

// Sum of squares in double, in an order that depends on n alone.
double sum_of_squares(const float* values, std::int64_t n);

// ((a+b)+(c+d))+…: neighbours first, so the error grows with the logarithm of the number of terms.
double pairwise_sum(std::span<const double> values);

}  // namespace etc

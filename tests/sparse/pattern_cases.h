// The batches of the pattern tests: uneven lengths, empty examples, several splits and segments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sparse/pattern_support.h"

namespace etc::test {

// A pattern, and the lengths of queries and keys of each example.
struct PatternBatch {
  std::string name;
  std::vector<std::int64_t> queries, keys;
  std::function<PatternCase(const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys)> build;

  PatternCase make() const;
  PatternBatch only(std::size_t b) const;
};

struct BigBirdShape {
  std::int64_t block_size, random_blocks, heads;
};

PatternBatch causal_batch(const std::string& name, const std::vector<std::int64_t>& queries,
                          const std::vector<std::int64_t>& keys, std::int64_t reach);
PatternBatch cross_batch(const std::string& name, const std::vector<std::int64_t>& queries,
                         const std::vector<std::int64_t>& keys);
PatternBatch bigbird_batch(const std::string& name, const std::vector<std::int64_t>& lengths,
                           const BigBirdShape& shape);

// At least one case of every pattern.
const std::vector<PatternBatch>& pattern_batches();

}  // namespace etc::test

// Runs a pattern's tiles through the operator and compares with the double-precision reference under a brute-force
// mask: visibility is evaluated pair by pair and never taken from the tiles.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/base/device.h"
#include "sparse/visible_tiles.h"

namespace etc::test {

struct PatternPair {
  std::int64_t head, example, query, key;  // query and key counted within the example
};

struct PatternCase {
  std::string name;
  std::shared_ptr<const sparse::AttentionTiles> tiles;  // key set 1 without keys
  std::function<bool(const PatternPair&)> sees;
  std::int64_t heads = 2, head_size = 8;
  std::int64_t layers = 1;
  bool carries = false, running_mean = false;
  float dropout = 0.0f;
  Device device = Device::cpu;
  std::int64_t first_ordinal = 0;  // of the first example; an example's numbers depend on its ordinal only
};

// One layer's numbers, rows dense.
struct PatternLayer {
  std::vector<float> q, dout, out, dq;             // [queries, N, D]
  std::array<std::vector<float>, 2> k, v, dk, dv;  // [keys, N, D]; of set 1 empty
  std::vector<float> lse;                          // [N, queries]
  std::vector<float> running;                      // C after this layer, external form
};

std::vector<PatternLayer> run_pattern(const PatternCase& pattern);

// Compares outputs, log-sum-exps, running scores of visible pairs and gradients of every layer. Returns an empty string
// or the place of the error.
std::string compare_pattern(const PatternCase& pattern, const std::vector<PatternLayer>& layers);

// Checks that tiles contain exactly the visible pairs, that their counts are correct, and that they have no columns
// beyond the whole steps that each group sees. Returns an empty string or a description of the error.
std::string check_tiles(const PatternCase& pattern);

// The names of the results in which two runs differ in any bit. The second run's rows correspond to those of the first
// from its example `b` on.
std::string different_bits(const PatternCase& batch, const std::vector<PatternLayer>& of_batch, std::size_t b,
                           const std::vector<PatternLayer>& alone);

}  // namespace etc::test

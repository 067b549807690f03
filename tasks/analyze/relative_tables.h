// The relative tables that the first layer's attention reads, whatever the method: learned vectors, factors and biases,
// NEZHA's fixed rows, Transformer-XL's projected sinusoids (analysis 6).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"

namespace etc::analyze {

inline constexpr std::int64_t kFarFrom = 10;  // distances beyond are what the rows near 0 are compared with

struct RelativeTableValues {
  std::string name;                            // "self_vectors", "long_biases", …: operator and part
  bool vectors = true;                         // numbers else: factors, or biases in units of a logit
  std::int64_t rows = 0, heads = 0, size = 0;  // heads: 1 where all read the same rows; size: 1 of numbers
  std::vector<float> values;                   // [rows, heads, size]
  std::int64_t first = 0;                      // the least distance (key - query) that the rows tell apart
  std::vector<std::int64_t> row_of;            // by distance, from `first` on: rows by distance; several may share one
  std::vector<std::string> other_rows;  // of ETC, behind those by distance: "not member", "member", "other paragraph"

  // Whether a distance is among them, and its row.
  bool has(std::int64_t distance) const {
    return distance >= first && distance < first + static_cast<std::int64_t>(row_of.size());
  }
  std::int64_t row(std::int64_t distance) const { return row_of[static_cast<std::size_t>(distance - first)]; }
  // L2 norm of a vector; the number itself.
  double size_of(std::int64_t row, std::int64_t head) const;
  // Mean over heads of size_of at distance 0, divided by the median over distances beyond kFarFrom of the same; nan
  // without such distances. Of numbers: of their absolute values.
  double nearness() const;
};

// The parts of a watched layer's tables; none without a method. etc_max_distance: k of labels that an ETC's input lists
// pair by pair; 0: rows follow from the tiles. On the CPU.
std::vector<RelativeTableValues> relative_tables_of(const WatchedAttention& watched, std::int64_t etc_max_distance);

}  // namespace etc::analyze

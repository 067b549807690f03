// Tables of relative positions (analysis 6): those that the first layer's attention reads, for every position method
// (learned vectors, factors and biases, NEZHA's fixed rows, Transformer-XL's projected sinusoids), and the sizes of the
// rows of every layer's parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::analyze {

inline constexpr std::int64_t kFarFrom = 10;  // the row at 0 is compared with the rows at larger distances than this

struct RelativeTableValues {
  std::string name;                            // "self_vectors", "long_biases", …: operator and part
  bool vectors = true;                         // false: scalars, that is factors, or biases in logit units
  std::int64_t rows = 0, heads = 0, size = 0;  // heads: 1 if all heads read the same rows; size: 1 for scalars
  std::vector<float> values;                   // [rows, heads, size]
  std::int64_t first = 0;                      // the least distance (key - query) with a row of its own
  std::vector<std::int64_t> row_of;            // row of each distance, starting at `first`; distances may share a row
  std::vector<std::string> other_rows;  // ETC's rows after those by distance: "not member", "member", "other paragraph"

  // Whether a distance has a row, and its row.
  bool has(std::int64_t distance) const {
    return distance >= first && distance < first + static_cast<std::int64_t>(row_of.size());
  }
  std::int64_t row(std::int64_t distance) const { return row_of[static_cast<std::size_t>(distance - first)]; }
  // The L2 norm of a vector, or the scalar itself.
  double size_of(std::int64_t row, std::int64_t head) const;
  // The mean over heads of size_of at distance 0, divided by the median of this mean over distances beyond kFarFrom; nan
  // without these distances. For scalars, of their absolute values.
  double nearness() const;
};

// The rows of one parameter, by label or distance and by head.
struct TableNorms {
  std::string name;                  // the parameter's name
  std::int64_t rows = 0, heads = 0;  // heads: 1 if all heads read the same rows
  std::vector<double> values;  // [rows, heads]: the L2 norm of a vector; a factor; a bias as it is added to a logit
};

// The relative tables of all layers. ETC's biases are divided by sqrt(D), as the scores are; T5's, whose scores have no scale,
// and Huang's factors are as they are stored. Transformer-XL has no parameter with such rows (its rows are a projection of
// sinusoids).
std::vector<TableNorms> table_norms_of(const EncoderConfig& model, const ParameterSet& parameters);

// The parts of a watched layer's tables; none without relative positions. etc_max_distance: the maximum distance k of the
// labels that an ETC's input lists for each pair; 0: rows follow from the tiles. On the CPU.
std::vector<RelativeTableValues> relative_tables_of(const WatchedAttention& watched, std::int64_t etc_max_distance);

}  // namespace etc::analyze

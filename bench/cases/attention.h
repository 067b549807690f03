// Attention problems for benchmarks and tests: one declaration of a case determines sizes, structure, inputs and
// outputs of either operator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/base/buffer.h"
#include "sparse/attention.h"
#include "sparse/etc_attention.h"
#include "sparse/score_state.h"
#include "sparse/visible_tiles.h"

namespace etc::bench {

// Which labels a case has.
enum class Labels {
  none,       // null tensors: everything visible, no relative term
  document,   // labels of a document of sentences: distances in the window, membership between long and global
  hard,       // the same with hard g2l: a global token sees its own sentence only
  scattered,  // random labels, random masks in pairs and whole tiles, and some fully masked rows
};

// The relative tables of a case that has labels.
struct RelativeParts {
  bool vectors = true, biases = true;
  bool key_vectors = false, factors = false, products = false, value_vectors = false;
  bool shared_heads = false;
};

struct AttentionCase {
  std::string name;
  std::vector<std::int64_t> lengths;  // L of each example
  std::vector<std::int64_t> globals;  // G of each example
  std::int64_t radius = 1;
  std::int64_t heads = 1;            // N
  std::int64_t head_size = 16;       // D
  std::int64_t relative_labels = 0;  // R; 0: no relative table (labels, if any, only mask)
  Labels labels = Labels::none;
  float magnitude = 1.0f;  // of q and k; scores have about its square
  float dropout = 0.0f;
  std::int64_t row_padding = 0;  // floats between rows, and after them, that no kernel may access
  std::uint64_t seed = 1;
  ComputeType compute = ComputeType::fp32;  // of the forward
  RelativeParts parts = {};
  float scale = 0.0f;                     // of the scores; 0: 1/sqrt(D)
  sparse::DistanceMap distances = {};     // if not empty: labels by distance, of R different rows; `labels` only mask
  std::vector<std::int64_t> shifts = {};  // of distances
};

// Offsets, label tensors and tiles of a case; shared by all layers and both operators.
struct Structure {
  explicit Structure(const AttentionCase& attention_case);

  std::vector<std::int64_t> long_offsets, global_offsets;
  std::vector<std::uint8_t> labels[sparse::kEtcTypes.size()];  // external form; empty: null
  sparse::AttentionTiles long_tiles, global_tiles;

  std::int64_t longs() const { return long_offsets.back(); }      // T
  std::int64_t globals() const { return global_offsets.back(); }  // U
  const sparse::TypeTiles& tiles(sparse::AttentionType type) const;
  sparse::ScoredOperators operators() const { return {&long_tiles, &global_tiles}; }

  // Builds the tiles once more, to time it.
  void build_tiles() const;

 private:
  sparse::LabelTensors tensors() const;
  std::int64_t radius_ = 0, relative_labels_ = 0;  // of listed labels
};

enum class Side { long_side, global_side };

// Rows of one tensor with a guard zone.
struct RowBuffer {
  RowBuffer() = default;
  RowBuffer(std::int64_t rows, std::int64_t width, std::int64_t padding);
  sparse::Rows rows() const { return {values.data(), stride, count}; }
  sparse::MutableRows mutable_rows() { return {values.data(), stride, count}; }
  float at(std::int64_t row, std::int64_t column) const { return values[row * stride + column]; }
  bool guards_intact() const;  // the padding is unchanged since construction

  Buffer<float> values;
  std::int64_t stride = 0, count = 0, width = 0;
};

// Inputs, outputs and gradients of one operator call of one layer. Key set 0 is l2l or g2g, set 1 is l2g or g2l.
class AttentionProblem {
 public:
  AttentionProblem(const AttentionCase& attention_case, std::shared_ptr<const Structure> structure, Side side,
                   std::uint32_t layer = 0);

  void forward(const sparse::TypeScores& first = {}, const sparse::TypeScores& second = {});
  void backward(const sparse::TypeScoreGradients& first = {}, const sparse::TypeScoreGradients& second = {});

  sparse::AttentionType type(int index) const { return tiles(index).type; }
  const sparse::AttentionTiles& tiles() const {
    return side == Side::long_side ? structure->long_tiles : structure->global_tiles;
  }
  const sparse::TypeTiles& tiles(int index) const { return tiles().types[index]; }
  sparse::AttentionInputs inputs() const;
  // 2 operations per component and visible pair for each of `products`.
  double useful_operations(int products) const;

  AttentionCase setup;
  std::shared_ptr<const Structure> structure;
  Side side;
  std::uint32_t layer;
  Device device = Device::cpu;         // where the operators run
  std::vector<std::int64_t> ordinals;  // [B]
  RowBuffer q, k[2], v[2], dout;
  RowBuffer out, dq, dk[2], dv[2];
  Buffer<float> rel, rel_bias, drel, drel_bias;  // [R, N, D], [R, N]; shared by heads [R, D], [R]
  Buffer<float> rel_k, factor, product, rel_v, drel_k, dfactor, dproduct, drel_v;
  Buffer<float> lse;  // [N, queries]

 private:
  void make_tables(std::uint64_t key);
  void* scratch(std::int64_t bytes);

  Buffer<std::uint8_t> scratch_;
};

}  // namespace etc::bench

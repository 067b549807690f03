// Plain structs of the attention operator's interface: types and operators as models declare them, rows of vectors,
// relative tables, running scores and dropout. No model, configuration or batch object reaches a kernel.
//
// C++17: device code reads these headers too.
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"
#include "etc_core/base/random.h"
#include "sparse/score_element.h"

namespace etc::sparse {

inline constexpr std::uint8_t kMasked = 255;  // label of a masked pair
inline constexpr int kKeySets = 2;            // key sets under one softmax

// From which queries to which keys (ETC's l2g: long queries over global keys). A model declares its types and numbers
// them from 0: the index identifies a type's running scores, the name appears in messages.
struct AttentionType {
  int index = 0;
  const char* name = "";
};
constexpr bool operator==(AttentionType a, AttentionType b) {
  return a.index == b.index;
}

// How a device divides an operator's work among its cores. This affects speed, scratch size and the order in which
// partial sums are added.
enum class Partition : int {
  queries,  // many queries that see few keys: key set 0 must be a window of the queries' own sequence; set 1 is short
  keys,     // few queries that see many keys, in any pattern: the keys are split, partial results are combined
};

// What a model declares once for each of its attention operators (etc_attention.h has those of ETC).
struct AttentionOperator {
  const char* name;               // in messages and in the profiler's table
  const char* bf16_name;          // in the profiler's table: forward in bf16
  const char* backward_name;      // in the profiler's table: backward
  AttentionType types[kKeySets];  // of its key sets
  DropoutSite dropout_site;
  Partition partition;
};

// The head size that the GPU's bf16 kernels use: rows of other head sizes are copied and padded with zeros to the next
// width. The width is a template argument of the kernels; each additional width means six more kernels to compile.
constexpr int bf16_width(int head_size) {
  return head_size <= 16 ? 16 : head_size <= 32 ? 32 : head_size <= 64 ? 64 : 128;
}

// Token-major vectors of all heads: row t is at data + t*stride and holds N*D numbers, head n at n*D. A column range of
// a wider matrix (one fused QKV product) is a Rows with the wider stride. Use bf16 only where row_type() (attention.h)
// returns it.
struct Rows {
  const float* data = nullptr;  // [rows, stride]
  std::int64_t stride = 0;      // numbers from row to row, at least N*D
  std::int64_t rows = 0;
  const Bf16* bf16 = nullptr;  // instead of data
};

struct MutableRows {
  float* data = nullptr;  // [rows, stride]
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  Bf16* bf16 = nullptr;  // instead of data
};

// Relative tables of one operator, shared by its key sets: a pair's label selects the row r. The parts are independent;
// without any part labels only mask. Two parts may use one table (rel and rel_k of Huang's method 4).
struct RelativeTable {
  const float* vectors = nullptr;        // rel [R, N, D]; null: no q·rel
  const float* biases = nullptr;         // rel_bias [R, N]; null: no bias
  std::int64_t labels = 0;               // R
  const float* key_vectors = nullptr;    // rel_k [R, N, D]; null: no k·rel_k
  const float* factors = nullptr;        // factor [R, N] of q·k; null: 1
  const float* products = nullptr;       // w [R, N, D]: q·k is sum_c q_c k_c w_c; null: w = 1. Not with factors
  const float* value_vectors = nullptr;  // rel_v [R, N, D], added to the values; null: none
  bool shared_heads = false;             // all heads read the same rows: tables are [R, D] and [R]

  // Whether a score has a term that depends on query and label alone.
  constexpr bool adds() const { return vectors != nullptr || biases != nullptr; }
  // Whether a part changes the products of q and k, or the values, pair by pair.
  constexpr bool joins() const {
    return key_vectors != nullptr || factors != nullptr || products != nullptr || value_vectors != nullptr;
  }
  // Rows a kernel looks up: R, or 0 when there is nothing to look up. Kernels test this instead of single pointers,
  // because any part alone requires the labels.
  constexpr std::int64_t rows() const { return adds() || joins() ? labels : 0; }
  // Number of heads in a table: N, or 1 where all heads share it.
  constexpr std::int64_t heads(std::int64_t of_queries) const { return shared_heads ? 1 : of_queries; }
};

// Each pointer is null when its part is null, otherwise it has the part's shape. Two parts may share a gradient array.
struct RelativeTableGradients {
  float* vectors = nullptr;        // drel +=
  float* biases = nullptr;         // drel_bias +=
  float* key_vectors = nullptr;    // drel_k +=
  float* factors = nullptr;        // dfactor +=
  float* products = nullptr;       // dw +=
  float* value_vectors = nullptr;  // drel_v +=
};

// What an operator does with the running scores C of one type (score_state.h owns them).
enum class ScoreMode : int {
  none,        // the type carries no scores: logits are s
  write,       // C = s         (first layer)
  add,         // C = C + s
  add_unkept,  // logits are C + s, C is unchanged (inference: nothing reads C after the last layer)
  read,        // logits are C; s is not computed (recomputation of a layer while C still belongs to it)
};

// Running scores of one type, as passed to forward; ScoreState fills this in.
struct TypeScores {
  ScoreMode mode = ScoreMode::none;
  ScoreElement* running = nullptr;  // C [N, columns, kGroup], 64-byte aligned (scores.h)
  float logit_scale = 1.0f;         // c: 1, or 1/(layer+1) for the running mean
  int layer = 0;                    // for messages
  HalfScore* half = nullptr;        // C in 16 bits instead of `running`: CPU, forward without recomputation
};

enum class ScoreGradientMode : int {
  none,   // the type carries no scores
  first,  // dC = ds          (the last layer: backward starts there)
  inner,  // dC = dC + ds
};

// Running scores of one type, as passed to backward; ScoreState fills this in.
struct TypeScoreGradients {
  ScoreGradientMode mode = ScoreGradientMode::none;
  ScoreElement* running = nullptr;  // C of this layer [N, columns, kGroup], 64-byte aligned
  float* gradient = nullptr;        // dC, same layout
  float logit_scale = 1.0f;         // c
  bool rewind = false;              // C = C - s at the end, so that C belongs to the layer before
  int layer = 0;
};

// Dropout of the probabilities. The bits come from etc_core/base/random.h, keyed by positions within the example.
struct DropoutArgs {
  std::uint64_t seed = 0;
  float rate = 0.0f;                              // 0: nothing is dropped
  const std::int64_t* sample_ordinals = nullptr;  // [B]
  std::uint32_t layer = 0;
};

}  // namespace etc::sparse

// What both sparse attention operators speak of: rows of vectors, attention types, relative tables, running scores and
// dropout, as plain structs. No model, configuration or batch object reaches a kernel.
//
// C++17: device code reads these headers too.
#pragma once

#include <cstdint>

#include "sparse/score_element.h"

namespace etc::sparse {

inline constexpr std::uint8_t kMasked = 255;  // label of a pair that does not see each other

// From queries to keys: l2g are long queries over global keys.
enum class AttentionType : int { l2l, l2g, g2g, g2l };
inline constexpr int kAttentionTypes = 4;

inline const char* attention_type_name(AttentionType type) {
  constexpr const char* kNames[kAttentionTypes] = {"l2l", "l2g", "g2g", "g2l"};
  return kNames[static_cast<int>(type)];
}

// Token-major vectors of all heads: row t lies at data + t*stride and holds N*D floats, head n at n*D. A column range
// of a wider matrix (one fused QKV product) is a Rows with the wider stride.
struct Rows {
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats from row to row, at least N*D
  std::int64_t rows = 0;    // T or U
};

struct MutableRows {
  float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
};

// Relative tables of one side (long or global), shared by its two types.
struct RelativeTable {
  const float* vectors = nullptr;  // rel [R, N, D]; null: labels only mask
  const float* biases = nullptr;   // rel_bias [R, N]; null: zeros
  std::int64_t labels = 0;         // R
};

struct RelativeTableGradients {
  float* vectors = nullptr;  // drel [R, N, D] +=; null when the table is
  float* biases = nullptr;   // drel_bias [R, N] +=; null when the biases are
};

// What an operator does with the running scores C of one type (architecture: "The running scores, exactly").
enum class ScoreMode : int {
  none,        // the type carries nothing: logits are s
  write,       // C = s         (first layer)
  add,         // C = C + s
  add_unkept,  // logits are C + s, C stays (inference: nothing reads C after the last layer)
  read,        // logits are C; s is not computed (recomputation of a layer whose C is still there)
};

// Running scores of one type as a forward operator sees them; ScoreState fills this in.
struct TypeScores {
  ScoreMode mode = ScoreMode::none;
  ScoreElement* running = nullptr;  // C, in the layout of scores.h, 64-byte aligned
  float logit_scale = 1.0f;         // c: 1, or 1/(layer+1) for the running mean
  int layer = 0;                    // for messages
};

enum class ScoreGradientMode : int {
  none,   // the type carries nothing
  first,  // dC = ds          (the last layer: backward starts there)
  inner,  // dC = dC + ds
};

// Running scores of one type as a backward operator sees them; ScoreState fills this in.
struct TypeScoreGradients {
  ScoreGradientMode mode = ScoreGradientMode::none;
  ScoreElement* running = nullptr;  // C of this layer, 64-byte aligned
  float* gradient = nullptr;        // dC, same layout
  float logit_scale = 1.0f;         // c
  bool rewind = false;              // C = C - s when done, so that C belongs to the layer before
  int layer = 0;
};

// Dropout of the probabilities; the bits are those of etc_core/base/random.h, keyed within the example.
struct DropoutArgs {
  std::uint64_t seed = 0;
  float rate = 0.0f;                              // 0: nothing is dropped
  const std::int64_t* sample_ordinals = nullptr;  // [B]
  std::uint32_t layer = 0;
};

}  // namespace etc::sparse

// The sparse attention operator (sparse/attention.h) as a function on a tape.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "sparse/attention.h"
#include "sparse/score_state.h"
#include "sparse/visible_tiles.h"

namespace etc {

// One operator's part of a batch.
struct OperatorBatch {
  sparse::AttentionTiles tiles;
  bool relative = false;  // whether the labels select rows of the operator's relative tables
};

// The inputs of one layer's attention, for analysis (sparse/attention_statistics.h).
struct WatchedAttention {
  std::int64_t layer = 0;
  sparse::AttentionInputs inputs;
  std::array<sparse::TypeScores, sparse::kKeySets> scores;  // as they are after the forward pass
  std::vector<Tensor> kept;                                 // keep the numbers of `inputs` alive
};

// Data of one batch that attention shares across all layers and between forward and backward. Closures hold it; it must
// not be moved, because the scores point to the tiles.
struct AttentionBatch {
  std::vector<OperatorBatch> operators;
  std::int64_t heads = 0;                   // N
  std::int64_t head_size = 0;               // D
  float dropout_rate = 0;                   // of the probabilities
  ComputeType compute = ComputeType::fp32;  // of the products
  float scale = 0;                          // of the scores; 0: 1/sqrt(D)
  std::uint64_t seed = 0;
  std::vector<std::int64_t> sample_ordinals;           // [B]
  std::optional<sparse::ScoreState> scores;            // of this forward; none: plain attention
  std::function<void(const WatchedAttention&)> watch;  // called after each operator; null costs nothing

  // The part for an operator; the batch must have been made for it.
  const OperatorBatch& of(const sparse::AttentionOperator& op) const;
  // For ScoreState.
  sparse::ScoredOperators scored_operators() const;
};

// N·D neighbouring columns of a variable. A recording tape takes only whole variables (first = 0, no other columns).
struct Columns {
  Var var;
  std::int64_t first = 0;
};

// One relative table: a parameter, the result of other functions (Transformer-XL's W_R·R), or constant numbers (a
// variable that needs no gradient). Converts implicitly from both, so that a model only names its parameters.
class RelativePart {
 public:
  RelativePart() = default;
  RelativePart(Parameter* parameter) : parameter_(parameter) {}
  RelativePart(const Var& var)
      : tensor_(var.defined() ? var.value() : Tensor()), gradient_(var.defined() ? var.gradient() : nullptr) {}

  bool given() const { return parameter_ != nullptr || gradient_ != nullptr; }
  const Tensor& value() const { return parameter_ != nullptr ? parameter_->value : tensor_; }
  Parameter* parameter() const { return parameter_; }  // null: the table is no parameter
  // Memory that the gradient is added to; null: the table is not trained.
  float* gradient() const;

 private:
  Parameter* parameter_ = nullptr;
  Tensor tensor_;
  std::shared_ptr<Gradient> gradient_;
};

// The tables of sparse/attention.h; parts that are not given are absent. One may be given for two parts.
struct RelativeParameters {
  RelativePart vectors = {};        // rel [R, N, D]
  RelativePart biases = {};         // rel_bias [R, N]
  RelativePart key_vectors = {};    // rel_k [R, N, D]
  RelativePart factors = {};        // factor [R, N]
  RelativePart products = {};       // w [R, N, D]
  RelativePart value_vectors = {};  // rel_v [R, N, D]
  bool shared_heads = false;        // all heads read the same rows: [R, D] and [R]
};

struct KeyColumns {
  Columns k, v;  // [keys, N·D]
};

// One operator's inputs.
struct AttentionInputs {
  Columns q;  // [queries, N·D]
  std::array<KeyColumns, sparse::kKeySets> keys;
  RelativeParameters relative;  // read only where the batch's labels are relative
};

// The preferred type of q, k and v of an operator of the batch: sparse::row_type(), or fp32 if the batch has a `watch`.
ElementType row_type(const AttentionBatch& batch, const sparse::AttentionOperator& op,
                     const RelativeParameters& relative, Device device);

// out [queries, N·D] of an operator of the batch, in the type of q, k and v; formulas in sparse/attention.h. Saves the
// five inputs, the tables that are variables, out and the log-sum-exp. With running scores, layers must be called in
// order, and in backward in reverse order (ScoreState says which calls are errors); backward then also restores the
// scores of a layer whose result has no gradient.
Var attention(Tape& tape, const sparse::AttentionOperator& op, const std::shared_ptr<AttentionBatch>& batch,
              std::int64_t layer, Pass pass, const AttentionInputs& inputs);

}  // namespace etc

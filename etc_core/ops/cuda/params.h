// Parameters of the kernels. The contracts are documented with the operators (etc_core/ops/*.h).
//
// C++17: host and device code include this header.
#pragma once

#include <cstdint>

#include "etc_core/base/cuda/span.h"
#include "etc_core/ops/activation_kind.h"
#include "etc_core/ops/update_block.h"

namespace etc::ops::cuda {

using simt::Span;

// HiddenDropout on the device: the structure of the batch, and one stream per example.
struct DropoutRows {
  Span<const std::int64_t> offsets;  // [B+1]; empty: no dropout
  Span<const std::uint64_t> keys;    // [B]
  std::uint32_t threshold = 0;       // a random word below it drops its element
  float kept_scale = 1.0f;           // 1/(1-rate)
};

// y = a + b | y = a + s·b | y = s·a
enum class Binary : int { add, axpy, scale };

struct ElementwiseParams {
  Binary kind = Binary::add;
  float s = 1.0f;
  Span<const float> a, b;  // [size]; b empty for scale
  Span<float> y;           // [size]
};

// Arrays of bf16, two numbers a word, `low` first. y = a + b
struct AddBf16Params {
  Span<const std::uint32_t> a, b;  // [size/2]
  Span<std::uint32_t> y;           // [size/2]
};

// y = x as bf16.
struct RoundParams {
  Span<const float> x;    // [size]
  Span<std::uint32_t> y;  // [size/2]
};

struct ActivationBf16Params {
  Activation activation = Activation::linear;
  Span<const std::uint32_t> x, dy;  // [size/2]; dy empty: forward
  Span<std::uint32_t> out;          // [size/2] act(x), or dy·act'(x)
};

struct ActivationParams {
  Activation activation = Activation::linear;
  Span<const float> x, dy;  // [size]; dy empty: forward
  Span<float> out;          // [size] act(x), or dy·act'(x)
};

// y = act(y + bias) on rows `stride` apart; z = y + bias, without gaps.
struct FinishRowsParams {
  std::int64_t rows = 0, cols = 0, stride = 0;
  Activation activation = Activation::linear;
  Span<const float> bias;  // [cols] may be empty
  Span<float> y, z;        // [rows, cols]; z may be empty
};

// [rows, cols], rows `stride` apart, as bf16 [rows, width].
struct RoundRowsParams {
  std::int64_t rows = 0, cols = 0, stride = 0, width = 0;
  Span<const float> from;  // [rows, cols]
  Span<std::uint32_t> to;  // [rows, width/2] two numbers a word
};

// to [rows, cols] = from [from_rows, cols], followed by rows of zeros. The words may have any meaning.
struct CopyRowsParams {
  std::int64_t rows = 0, from_rows = 0, cols = 0, from_stride = 0, to_stride = 0;
  Span<const std::uint32_t> from;  // strides in words
  Span<std::uint32_t> to;
};

struct ColumnSumParams {
  std::int64_t rows = 0, cols = 0, stride = 0;
  Span<const float> x;               // [rows, cols], rows `stride` apart; empty if x_bf16 is set
  Span<const std::uint32_t> x_bf16;  // the same in bf16, two numbers a word
  Span<float> partial;               // [blocks, cols]
  Span<float> sums;                  // [cols] +=
};

// y = x + alpha·branch.
struct ScaledSumParams {
  Span<const float> x, branch, alpha;  // [size], [size], [alphas]
  Span<float> y;                       // [size]
};

// dbranch = alpha·dy, and the sums of dy·branch over fixed blocks of elements, added in order.
struct ScaledSumBackwardParams {
  Span<const float> dy, branch, alpha;  // [size], [size], [alphas]
  Span<float> dbranch;                  // [size] or empty
  Span<double> partial;                 // [blocks]; empty without dalpha or with several alphas
  Span<float> dalpha;                   // [alphas] += or empty
};

struct DropoutAddParams {
  std::int64_t rows = 0, cols = 0;
  Span<const float> a, base;  // [rows, cols]; base may be empty
  Span<float> y;
  DropoutRows dropout;
};

struct LayerNormParams {
  std::int64_t rows = 0, cols = 0;
  Span<const float> x, branch, gamma, beta;  // [M, H], [M, H] or empty, [H], [H]
  Span<float> y, sum, mean, rstd;            // [M, H], [M, H], [M], [M]; all but y may be empty
  Span<std::uint32_t> y_bf16;                // [M, H/2] two numbers a word; may be empty
  DropoutRows dropout;
  float epsilon = 0;    // as in NormStatistics, whose header device code cannot include
  bool centred = true;  // as in NormStatistics
};

struct LayerNormBackwardParams {
  std::int64_t rows = 0, cols = 0;
  Span<const float> dy, sum, mean, rstd, gamma;  // [M, H], [M, H], [M], [M], [H]
  Span<float> dx, dbranch;                       // [M, H] each; may be empty
  Span<std::uint32_t> dbranch_bf16;              // instead of dbranch: [M, H/2] two numbers a word
  bool add_to_dx = false;
  DropoutRows dropout;
  bool centred = true;
};

// Sums over fixed blocks of rows of dy·xhat and of dy, and their sum in order.
struct LayerNormTablesParams {
  std::int64_t rows = 0, cols = 0;
  Span<const float> dy, sum, mean, rstd;  // [M, H], [M, H], [M], [M]
  Span<float> partial;                    // [blocks, 2, H]
  Span<float> dgamma, dbeta;              // [H] +=
};

// Forward: y = the biases. Backward: drel, dcontent and dposition += their gradients from dy.
struct PositionBiasParams {
  std::int64_t rows = 0, heads = 0, head_size = 0;  // R, N, D
  Span<const float> rel, content, position;         // [R, N, D], [N, D] each or empty
  Span<float> y;                                    // [R, N]
  Span<const float> dy;                             // [R, N]; empty: forward
  Span<float> drel, dcontent, dposition;            // may be empty
};

// sum: to [S, H] (= or +=) from [M, H]; spread: to [M, H] (= or +=) from [S, H].
struct SegmentParams {
  bool spread = false;
  std::int64_t segments = 0, cols = 0;
  Span<const std::int64_t> offsets;  // [S+1]
  Span<const float> from;
  Span<float> to;
  bool add = false;
};

struct CrossEntropyParams {
  std::int64_t groups = 0, stride = 1;
  Span<const std::int64_t> offsets;       // [K+1]
  Span<const float> logits;               // element i at i·stride
  Span<const std::uint8_t> counted;       // may be empty
  Span<const std::int32_t> target_index;  // or empty and:
  Span<const float> target;
  double label_smoothing = 0, scale = 1;
  Span<double> losses;  // [K]
  Span<float> dlogits;  // may be empty
};

struct VocabularySoftmaxParams {
  std::int64_t rows = 0, vocabulary = 0;
  Span<const std::int32_t> labels;  // [M]
  bool gradient = false;
  double scale = 1;
  Span<float> z;                    // [M, V]
  Span<double> losses, best_log_p;  // [M]
  double smoothing = 0;
  Span<double> smoothed;    // [M] or empty
  Span<std::int32_t> best;  // [M]
};

// squares: the blocks' sums of g²; moments and weights: as update.h says.
enum class UpdatePass : int { squares, moments, weights };

struct UpdateParams {
  UpdatePass pass = UpdatePass::squares;
  UpdateConstants constants;
  Span<const UpdateBlock> blocks;
  Span<double> sums;  // [blocks, 2]: g² | w² and u² of adapted blocks; may be empty
};

struct EmbeddingTable {
  Span<const float> table;       // [limit, H]; empty: absent
  Span<const std::int32_t> ids;  // [M]
  std::int64_t limit = 0;
};

struct EmbeddingParams {
  std::int64_t rows = 0, cols = 0;
  Span<const float> base, adder;  // [M, H]; may be empty
  EmbeddingTable tokens, segments, positions;
  Span<float> e;  // [M, H]
};

// Tokens sorted by id, and where each distinct id begins.
struct EmbeddingBackwardParams {
  std::int64_t cols = 0;
  std::int64_t distinct = 0;
  Span<const float> de;                  // [M, H]
  Span<const std::int32_t> ids, tokens;  // [kept]
  Span<const std::int32_t> first;        // [distinct + 1]
  Span<float> dtable;                    // [limit, H] +=
};

}  // namespace etc::ops::cuda

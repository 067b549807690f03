// The point-wise operators on CUDA: prepare the kernel arguments and copy the structure of the batch to the device.
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/launch.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/position_bias.h"
#include "etc_core/ops/scaled_sum.h"
#include "etc_core/ops/vocabulary_softmax.h"

namespace etc::ops::cuda {

namespace {

// The streams of a call's examples: offsets [B+1] and keys [B] on the device. Keys are computed on the host, once per
// example, so that kernels need neither seed nor ordinals.
class Dropout {
 public:
  explicit Dropout(const HiddenDropout& dropout)
      : offsets_(dropout.rate > 0 ? dropout.offsets : nullptr, dropout.examples + 1), keys_(nullptr, 0) {
    if (dropout.rate == 0) return;
    std::vector<std::uint64_t> keys;
    for (std::int64_t b = 0; b < dropout.examples; ++b) {
      keys.push_back(dropout_key(dropout.seed, dropout.sample_ordinals[b], dropout.layer, dropout.site));
    }
    keys_ = OnDevice<std::uint64_t>(keys.data(), dropout.examples);
    threshold_ = dropout_threshold(dropout.rate);
    kept_scale_ = 1.0f / (1.0f - dropout.rate);
  }
  DropoutRows rows() const { return {offsets_.span(), keys_.span(), threshold_, kept_scale_}; }

 private:
  OnDevice<std::int64_t> offsets_;
  OnDevice<std::uint64_t> keys_;
  std::uint32_t threshold_ = 0;
  float kept_scale_ = 1.0f;
};

// y [size] = a + b, a + s·b or s·a; b may be null.
void elementwise(Binary kind, float s, const float* a, const float* b, float* y, std::int64_t size) {
  launch(ElementwiseParams{kind, s, span(a, size), span(b, size), span(y, size)}, simt::stream());
}

void scaled_sum(const ScaledSumForward& args) {
  launch(ScaledSumParams{span(args.x, args.size), span(args.branch, args.size), span(args.alpha, args.alphas),
                         span(args.y, args.size)},
         simt::stream());
}

void scaled_sum_backward(const ScaledSumBackward& args) {
  // A single alpha needs partial sums over blocks of elements; with one alpha per column, one block sums each column.
  const std::int64_t blocks = args.dalpha != nullptr && args.alphas == 1 ? sum_blocks(args.size) : 0;
  Bytes memory = simt::device_bytes(blocks * static_cast<std::int64_t>(sizeof(double)), Purpose::scratch);  // [blocks]
  launch(ScaledSumBackwardParams{.dy = span(args.dy, args.size),
                                 .branch = span(args.branch, args.size),
                                 .alpha = span(args.alpha, args.alphas),
                                 .dbranch = span(args.dbranch, args.size),
                                 .partial = {static_cast<double*>(memory.data()), blocks},
                                 .dalpha = span(args.dalpha, args.alphas)},
         simt::stream());
}

// The parameters common to both directions.
template <typename Args>
PositionBiasParams position_bias_params(const Args& args) {
  const std::int64_t width = args.heads * args.head_size;
  PositionBiasParams params;
  params.rows = args.rows;
  params.heads = args.heads;
  params.head_size = args.head_size;
  params.rel = span(args.rel, args.rows * width);
  params.content = span(args.content, width);
  params.position = span(args.position, width);
  return params;
}

void position_bias(const PositionBiasForward& args) {
  PositionBiasParams params = position_bias_params(args);
  params.y = span(args.y, args.rows * args.heads);
  launch(params, simt::stream());
}

void position_bias_backward(const PositionBiasBackward& args) {
  PositionBiasParams params = position_bias_params(args);
  const std::int64_t width = args.heads * args.head_size;
  params.dy = span(args.dy, args.rows * args.heads);
  params.drel = span(args.drel, args.rows * width);
  params.dcontent = span(args.dcontent, width);
  params.dposition = span(args.dposition, width);
  launch(params, simt::stream());
}

// y [M, H] = base + dropout(a); base may be null.
void dropout_add(const DropoutAdd& args) {
  const Dropout dropout(args.dropout);
  const std::int64_t size = args.rows * args.cols;
  launch(DropoutAddParams{args.rows, args.cols, span(args.a, size), span(args.base, size), span(args.y, size),
                          dropout.rows()},
         simt::stream());
}

// One kernel, with a block of threads per row. Spans of null pointers are empty; kernels write only the non-empty ones.
void layer_norm(const LayerNormForward& args) {
  const Dropout dropout(args.dropout);
  const std::int64_t size = args.rows * args.cols;
  launch(LayerNormParams{.rows = args.rows,
                         .cols = args.cols,
                         .x = span(args.x, size),  // [M, H], as branch, y and sum
                         .branch = span(args.branch, size),
                         .gamma = span(args.gamma, args.cols),
                         .beta = span(args.beta, args.cols),
                         .y = span(args.y, size),
                         .sum = span(args.sum, size),
                         .mean = span(args.mean, args.rows),  // [M], as rstd
                         .rstd = span(args.rstd, args.rows),
                         .y_bf16 = words(args.y_bf16, size),
                         .dropout = dropout.rows(),
                         .epsilon = args.statistics.epsilon,
                         .centred = args.statistics.centred},
         simt::stream());
}

// Two kernels for dgamma and dbeta (sums over rows), one for dx and dbranch (one block per row); each part runs only if
// requested.
void layer_norm_backward(const LayerNormBackward& args) {
  const Dropout dropout(args.dropout);
  const std::int64_t size = args.rows * args.cols;
  // Before dx, which may overwrite dy.
  if (args.dgamma != nullptr) {
    const std::int64_t partial = norm_blocks(args.rows) * 2 * args.cols;  // [blocks, 2, H]
    Bytes memory = simt::device_bytes(partial * static_cast<std::int64_t>(sizeof(float)), Purpose::scratch);
    launch(LayerNormTablesParams{.rows = args.rows,
                                 .cols = args.cols,
                                 .dy = span(args.dy, size),
                                 .sum = span(args.sum, size),
                                 .mean = span(args.mean, args.rows),
                                 .rstd = span(args.rstd, args.rows),
                                 .partial = {static_cast<float*>(memory.data()), partial},
                                 .dgamma = span(args.dgamma, args.cols),
                                 .dbeta = span(args.dbeta, args.cols)},
           simt::stream());
  }
  if (args.dx == nullptr && args.dbranch == nullptr && args.dbranch_bf16 == nullptr) return;
  launch(LayerNormBackwardParams{.rows = args.rows,
                                 .cols = args.cols,
                                 .dy = span(args.dy, size),
                                 .sum = span(args.sum, size),
                                 .mean = span(args.mean, args.rows),
                                 .rstd = span(args.rstd, args.rows),
                                 .gamma = span(args.gamma, args.cols),
                                 .dx = span(args.dx, size),
                                 .dbranch = span(args.dbranch, size),
                                 .dbranch_bf16 = words(args.dbranch_bf16, size),
                                 .add_to_dx = args.add_to_dx,
                                 .dropout = dropout.rows(),
                                 .centred = args.centred},
         simt::stream());
}

// Throws an Error if a target is not a counted logit of its group. Checked on the host, where targets lie.
void check_targets(const CrossEntropy& args) {
  for (std::int64_t k = 0; k < args.groups && args.target_index != nullptr; ++k) {
    const std::int64_t size = args.offsets[k + 1] - args.offsets[k];
    const std::int64_t index = args.target_index[k];
    if (index == -1) continue;
    if (index < 0 || index >= size) {
      fail("softmax_cross_entropy", "group {}: target index: expected -1 (none) or 0 to {}, got {}", k, size - 1,
           index);
    }
    if (args.counted != nullptr && args.counted[args.offsets[k] + index] == 0) {
      fail("softmax_cross_entropy", "group {}: target index {} is not a counted logit", k, index);
    }
  }
}

void cross_entropy(const CrossEntropy& args) {
  check_targets(args);
  const std::int64_t size = args.offsets[args.groups];
  // Logits may be a column of a wider matrix: the last one is (size - 1)·stride after the first.
  const std::int64_t reach = size == 0 ? 0 : (size - 1) * args.stride + 1;
  const OnDevice<std::int64_t> offsets(args.offsets, args.groups + 1);   // [K+1]
  const OnDevice<std::uint8_t> counted(args.counted, size);              // [offsets[K]] or none
  const OnDevice<std::int32_t> targets(args.target_index, args.groups);  // [K] or none
  launch(CrossEntropyParams{.groups = args.groups,
                            .stride = args.stride,
                            .offsets = offsets.span(),
                            .logits = span(args.logits, reach),
                            .counted = counted.span(),
                            .target_index = targets.span(),
                            .target = span(args.target, size),
                            .label_smoothing = static_cast<double>(args.label_smoothing),
                            .scale = args.scale,
                            .losses = span(args.losses, args.groups),  // [K]
                            .dlogits = span(args.dlogits, reach)},
         simt::stream());
}

// All results are copied to the host together.
void vocabulary_softmax(const VocabularySoftmax& args) {
  const OnDevice<std::int32_t> labels(args.labels, args.rows);
  VocabularySoftmaxParams params;
  params.rows = args.rows;
  params.vocabulary = args.vocabulary;
  params.labels = labels.span();
  params.gradient = args.gradient;
  params.scale = args.scale;
  params.smoothing = args.smoothing;
  params.z = span(args.z, args.rows * args.vocabulary);
  const auto lay_out = [&](void* block) {
    simt::Carver carver(block);
    params.losses = carver.take<double>(args.rows);
    params.best_log_p = carver.take<double>(args.rows);
    if (args.smoothed != nullptr) params.smoothed = carver.take<double>(args.rows);
    params.best = carver.take<std::int32_t>(args.rows);
    return carver.used();
  };
  Bytes memory = simt::device_bytes(lay_out(nullptr), Purpose::scratch);
  lay_out(memory.data());
  launch(params, simt::stream());
  const auto to_host = [&](auto* host, const auto& device) {
    if (host != nullptr) simt::copy_to_host(host, device.data, args.rows * static_cast<std::int64_t>(sizeof(*host)));
  };
  to_host(args.losses, params.losses);
  to_host(args.best_log_p, params.best_log_p);
  to_host(args.smoothed, params.smoothed);
  to_host(args.best, params.best);
}

}  // namespace

// Operators that consist of a single launch are registered here as lambdas.
void register_pointwise() {
  activation_forward_kernel.fill(Device::cuda, [](Activation activation, const float* x, float* y, std::int64_t size) {
    launch(ActivationParams{activation, span(x, size), {}, span(y, size)}, simt::stream());
  });
  activation_backward_kernel.fill(
      Device::cuda, [](Activation activation, const float* x, const float* dy, float* dx, std::int64_t size) {
        launch(ActivationParams{activation, span(x, size), span(dy, size), span(dx, size)}, simt::stream());
      });
  activation_forward_bf16_kernel.fill(
      Device::cuda, [](Activation activation, const Bf16* x, Bf16* y, std::int64_t size) {
        launch(ActivationBf16Params{activation, words(x, size), {}, words(y, size)}, simt::stream());
      });
  activation_backward_bf16_kernel.fill(
      Device::cuda, [](Activation activation, const Bf16* x, const Bf16* dy, Bf16* dx, std::int64_t size) {
        launch(ActivationBf16Params{activation, words(x, size), words(dy, size), words(dx, size)}, simt::stream());
      });
  add_bf16_kernel.fill(Device::cuda, [](const Bf16* a, const Bf16* b, Bf16* y, std::int64_t size) {
    launch(AddBf16Params{words(a, size), words(b, size), words(y, size)}, simt::stream());
  });
  round_to_bf16_kernel.fill(Device::cuda, [](const float* x, Bf16* y, std::int64_t size) {
    launch(RoundParams{span(x, size), words(y, size)}, simt::stream());
  });
  add_kernel.fill(Device::cuda, [](const float* a, const float* b, float* y, std::int64_t size) {
    elementwise(Binary::add, 1.0f, a, b, y, size);
  });
  axpy_kernel.fill(Device::cuda, [](float s, const float* b, float* a, std::int64_t size) {
    elementwise(Binary::axpy, s, a, b, a, size);
  });
  scale_kernel.fill(Device::cuda,
                    [](float s, float* a, std::int64_t size) { elementwise(Binary::scale, s, a, nullptr, a, size); });
  scaled_sum_kernel.fill(Device::cuda, scaled_sum);
  scaled_sum_backward_kernel.fill(Device::cuda, scaled_sum_backward);
  position_bias_kernel.fill(Device::cuda, position_bias);
  position_bias_backward_kernel.fill(Device::cuda, position_bias_backward);
  dropout_add_kernel.fill(Device::cuda, dropout_add);
  layer_norm_kernel.fill(Device::cuda, layer_norm);
  layer_norm_backward_kernel.fill(Device::cuda, layer_norm_backward);
  cross_entropy_kernel.fill(Device::cuda, cross_entropy);
  vocabulary_softmax_kernel.fill(Device::cuda, vocabulary_softmax);
}

}  // namespace etc::ops::cuda

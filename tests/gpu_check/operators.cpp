// The dense operators on the device compared with the CPU's, on the same random numbers.
#include <cmath>

#include "etc_core/ops/activation.h"
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/embedding.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/scaled_sum.h"
#include "etc_core/ops/segments.h"
#include "etc_core/ops/top_k.h"
#include "etc_core/ops/update.h"
#include "etc_core/ops/vocabulary_softmax.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/stages.h"

namespace etc::gpu_check {

namespace {

struct Shape {
  std::int64_t rows, cols, out;  // out: columns of a dense layer's result
};

// Two examples, or runs of rows: the first has one row, the second all others.
std::vector<std::int64_t> offsets_of(const Shape& s) {
  return {0, 1, s.rows};
}

ops::HiddenDropout dropout_of(const std::vector<std::int64_t>& offsets) {
  static const std::uint64_t kOrdinals[] = {3, 4};
  return {.rate = 0.1f, .seed = 5, .examples = 2, .offsets = offsets.data(), .sample_ordinals = kOrdinals};
}

// The values that an operator returns to the host; they are compared as well as the arrays.
using Numbers = std::vector<double>;

Numbers dense_layer(Arrays& arrays, const Shape& s) {
  ops::LinearForward a{.rows = s.rows,
                       .in = s.cols,
                       .out = s.out,
                       .x = arrays.take(s.rows * s.cols),
                       .x_stride = s.cols,
                       .weight = arrays.take(s.cols * s.out),
                       .bias = arrays.take(s.out),
                       .activation = ops::Activation::gelu,
                       .y = arrays.take(s.rows * s.out),
                       .y_stride = s.out,
                       .pre_activation = arrays.take(s.rows * s.out)};
  ops::linear(arrays.device(), a);
  ops::LinearBackward b{.rows = s.rows,
                        .in = s.cols,
                        .out = s.out,
                        .dz = arrays.take(s.rows * s.out),
                        .dz_stride = s.out,
                        .x = a.x,
                        .x_stride = s.cols,
                        .weight = a.weight,
                        .dx = arrays.take(s.rows * s.cols),
                        .dx_stride = s.cols,
                        .add_to_dx = true,
                        .dweight = arrays.take(s.cols * s.out),
                        .dbias = arrays.take(s.out)};
  ops::linear_backward(arrays.device(), b);
  return {};
}

Numbers activations(Arrays& arrays, const Shape& s) {
  const std::int64_t size = s.rows * s.cols;
  for (const auto kind : {ops::Activation::gelu, ops::Activation::relu, ops::Activation::tanh}) {
    const float *x = arrays.take(size), *dy = arrays.take(size);
    ops::activation_forward(arrays.device(), kind, x, arrays.take(size), size);
    ops::activation_backward(arrays.device(), kind, x, dy, arrays.take(size), size);
  }
  return {};
}

Numbers layer_norm(Arrays& arrays, const Shape& s) {
  const std::int64_t size = s.rows * s.cols;
  const auto offsets = offsets_of(s);
  ops::LayerNormForward f{.rows = s.rows,
                          .cols = s.cols,
                          .x = arrays.take(size),
                          .branch = arrays.take(size),
                          .dropout = dropout_of(offsets),
                          .gamma = arrays.take(s.cols),
                          .beta = arrays.take(s.cols),
                          .y = arrays.take(size),
                          .sum = arrays.take(size),
                          .mean = arrays.take(s.rows),
                          .rstd = arrays.take(s.rows)};
  ops::layer_norm(arrays.device(), f);
  ops::LayerNormBackward b{.rows = s.rows,
                           .cols = s.cols,
                           .dy = arrays.take(size),
                           .sum = f.sum,
                           .mean = f.mean,
                           .rstd = f.rstd,
                           .gamma = f.gamma,
                           .dx = arrays.take(size),
                           .add_to_dx = true,
                           .dbranch = arrays.take(size),
                           .dropout = f.dropout,
                           .dgamma = arrays.take(s.cols),
                           .dbeta = arrays.take(s.cols)};
  ops::layer_norm_backward(arrays.device(), b);
  return {};
}

Numbers dropout(Arrays& arrays, const Shape& s) {
  const std::int64_t size = s.rows * s.cols;
  const auto offsets = offsets_of(s);
  const float *a = arrays.take(size), *base = arrays.take(size);
  ops::dropout_add(arrays.device(), {s.rows, s.cols, a, base, arrays.take(size), dropout_of(offsets)});
  return {};
}

Numbers scaled_sum(Arrays& arrays, const Shape& s) {
  const std::int64_t size = s.rows * s.cols;
  const float *x = arrays.take(size), *branch = arrays.take(size), *alpha = arrays.take(1);
  ops::scaled_sum(arrays.device(), {size, x, branch, alpha, arrays.take(size)});
  float* dy = arrays.take(size);
  ops::scaled_sum_backward(arrays.device(), {size, dy, branch, alpha, dy, arrays.take(1)});
  const float* const columns = arrays.take(s.cols);
  ops::scaled_sum(arrays.device(), {size, x, branch, columns, arrays.take(size), s.cols});
  ops::scaled_sum_backward(arrays.device(), {size, dy, branch, columns, dy, arrays.take(s.cols), s.cols});
  return {};
}

Numbers embedding(Arrays& arrays, const Shape& s) {
  const std::int64_t limit = 30;
  std::vector<std::int32_t> ids;
  for (std::int64_t row = 0; row < s.rows; ++row) ids.push_back(static_cast<std::int32_t>(row * row % limit));
  ops::EmbeddingForward f{.rows = s.rows,
                          .cols = s.cols,
                          .tokens = {arrays.take(limit * s.cols), limit, ids.data(), "token_ids"},
                          .adder = arrays.take(s.rows * s.cols),
                          .e = arrays.take(s.rows * s.cols)};
  ops::embedding(arrays.device(), f);
  const float* de = arrays.take(s.rows * s.cols);
  ops::embedding_backward(arrays.device(), {s.rows, s.cols, limit, de, ids.data(), arrays.take(limit * s.cols)});
  return {};
}

Numbers cross_entropy(Arrays& arrays, const Shape& s) {
  const auto offsets = offsets_of(s);
  const std::int32_t targets[] = {0, static_cast<std::int32_t>((s.rows - 1) / 2)};
  const Bytes losses(2 * sizeof(double), Purpose::scratch, arrays.device());
  ops::CrossEntropy args{.groups = 2,
                         .offsets = offsets.data(),
                         .logits = arrays.take(s.rows),
                         .target_index = targets,
                         .label_smoothing = 0.1f,
                         .losses = static_cast<double*>(const_cast<void*>(losses.data())),
                         .dlogits = arrays.take(s.rows)};
  ops::cross_entropy(arrays.device(), args);
  Numbers on_host(2);
  copy_bytes(Device::cpu, on_host.data(), arrays.device(), losses.data(), 2 * sizeof(double));
  return on_host;
}

Numbers vocabulary_softmax(Arrays& arrays, const Shape& s) {
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(s.rows), static_cast<std::int32_t>(s.cols / 2));
  Numbers losses(labels.size());
  std::vector<std::int32_t> best(labels.size());
  ops::vocabulary_softmax(arrays.device(), {.rows = s.rows,
                                            .vocabulary = s.cols,
                                            .z = arrays.take(s.rows * s.cols),
                                            .labels = labels.data(),
                                            .gradient = true,
                                            .losses = losses.data(),
                                            .best = best.data()});
  losses.insert(losses.end(), best.begin(), best.end());
  return losses;
}

Numbers segments(Arrays& arrays, const Shape& s) {
  const auto offsets = offsets_of(s);
  float *rows = arrays.take(s.rows * s.cols), *sums = arrays.take(2 * s.cols);
  ops::sum_segments(arrays.device(), {2, s.cols, offsets.data(), rows, sums, true});
  ops::spread_segments(arrays.device(), {2, s.cols, offsets.data(), arrays.take(s.rows * s.cols), sums, false});
  return {};
}

Numbers elementwise(Arrays& arrays, const Shape& s) {
  const std::int64_t size = s.rows * s.cols;
  float *a = arrays.take(size), *b = arrays.take(size);
  ops::add(arrays.device(), a, b, arrays.take(size), size);
  ops::axpy(arrays.device(), 0.3f, b, a, size);
  ops::scale(arrays.device(), 1.7f, b, size);
  return {};
}

Numbers updates(Arrays& arrays, const Shape& s) {
  std::vector<ops::UpdateBlock> blocks;
  for (const bool adapted : {false, true}) {
    const std::int64_t size = s.rows * s.cols;
    float *g = arrays.take(size), *m = arrays.take(size), *v = arrays.take(size), *w = arrays.take(size);
    ops::scale(arrays.device(), 0.0f, v, size);  // no square is negative
    blocks.push_back({g, m, v, w, size, 0.01f, 0.1f, adapted});
  }
  const ops::UpdateConstants constants{0.9f, 0.999f, 0.1f, 0.001f, 1e-6f, 0.7f};
  Numbers sums = ops::gradient_squares(arrays.device(), blocks);
  for (const ops::UpdateNorms& norms : ops::update_moments(arrays.device(), constants, blocks)) {
    sums.push_back(norms.weights);
    sums.push_back(norms.update);
  }
  ops::update_weights(arrays.device(), constants, std::span(blocks).subspan(1));
  return sums;
}

Numbers top_k(Arrays& arrays, const Shape& s) {
  const auto offsets = offsets_of(s);
  std::vector<ops::Ranked> top(static_cast<std::size_t>(2 * s.cols * 50));
  ops::top_k(arrays.device(), {2, s.cols, 50, offsets.data(), arrays.take(s.rows * s.cols), top.data()});
  Numbers numbers;
  for (const ops::Ranked& ranked : top) numbers.insert(numbers.end(), {static_cast<double>(ranked.row), ranked.value});
  return numbers;
}

struct Operator {
  const char* name;
  // Allowed error relative to 1 + |value|, in roundings of a sum in another order; 0: bit-identical to the CPU.
  double roundings;
  Numbers (*run)(Arrays&, const Shape&);
};

constexpr Operator kOperators[] = {
    {"dense layer", 1, dense_layer}, {"activations", 1, activations},
    {"layer norm", 8, layer_norm},   {"dropout", 0, dropout},
    {"embedding", 0, embedding},     {"cross-entropy", 1, cross_entropy},
    {"runs of rows", 0, segments},   {"element-wise", 1, elementwise},
    {"updates", 1, updates},         {"top_k", 0, top_k},
    {"scaled sums", 1, scaled_sum},  {"vocabulary softmax", 1, vocabulary_softmax},
};

std::string compare(const Operator& op, const Shape& s, Json& figures) {
  const auto numbers_of = [&](Device device) {
    Arrays arrays(device);
    Numbers all = op.run(arrays, s);
    for (const float value : arrays.values()) all.push_back(value);
    return all;
  };
  const Numbers got = numbers_of(Device::cuda), expected = numbers_of(Device::cpu);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(got[i] - expected[i]) / (1 + std::abs(expected[i]));
    if (!(off <= worst)) worst = off;  // also when it is nan
  }
  figures["worst"] = worst;
  // fp32 sums of up to that many terms below 1.
  const double allowed = op.roundings * 6e-8 * static_cast<double>(8 * std::max(s.rows, s.cols));
  return worst <= allowed ? "" : "differs from the CPU's";
}

}  // namespace

void operators(Report& report) {
  for (const Operator& op : kOperators) {
    for (const Shape& s : {Shape{2, 3, 1}, Shape{5, 4, 7}, Shape{70, 24, 16}, Shape{513, 96, 200}}) {
      const std::string name = std::string(op.name) + " " + std::to_string(s.rows) + " " + std::to_string(s.cols);
      run_case(report, name, [&](Json& figures) { return compare(op, s, figures); });
    }
  }
}

}  // namespace etc::gpu_check

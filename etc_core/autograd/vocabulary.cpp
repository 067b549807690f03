#include "etc_core/autograd/vocabulary.h"

#include <algorithm>
#include <cmath>

#include "etc_core/autograd/recording.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/top_k.h"
#include "etc_core/ops/vocabulary_softmax.h"

namespace etc {

using recording::data_of;

namespace {

constexpr const char* kWhere = "vocabulary_loss";

void check(const Tensor& x, const VocabularyLayer& layer, std::int64_t labels) {
  const std::vector<std::int64_t>& shape = layer.table->shape;
  if (x.rank() != 2 || x.cols() != shape.at(1)) {
    fail(kWhere, "x: expected [P, {}] like {}, got {}", shape[1], layer.table->name, x.shape_text());
  }
  if (layer.bias != nullptr && layer.bias->size() != shape[0])
    fail(kWhere, "bias: expected [{}], got [{}]", shape[0], layer.bias->size());
  if (labels != x.rows()) fail(kWhere, "labels: expected {}, one for each row, got {}", x.rows(), labels);
}

// Rows first … first+rows−1 of x and their logits [rows, V].
struct Slice {
  const Tensor& x;
  const VocabularyLayer& layer;
  std::int64_t first, rows;

  std::int64_t vocabulary() const { return layer.table->shape[0]; }
  std::int64_t width() const { return x.cols(); }

  // packed: the table, or null.
  void logits(float* z, const ops::PackedWeights* packed = nullptr) const {
    ops::LinearForward args{.rows = rows, .in = width(), .out = vocabulary()};
    args.x = x.data() + first * width();
    args.x_stride = width();
    if (packed != nullptr) {
      args.packed = packed;
    } else {
      args.weight = data_of(layer.table);
      args.layout = ops::WeightLayout::out_in;
    }
    args.bias = data_of(layer.bias);
    args.y = z;
    args.y_stride = vocabulary();
    ops::linear(x.device(), args);
  }

  // forward: z = x·Eᵀ + b; so dx = dz·E, dE += dzᵀ·x, db += column sums of dz.
  void gradients(const float* dz, float* dx) const {
    ops::LinearBackward args{.rows = rows, .in = width(), .out = vocabulary(), .dz = dz, .dz_stride = vocabulary()};
    args.x = x.data() + first * width();
    args.x_stride = width();
    args.weight = data_of(layer.table);
    args.layout = ops::WeightLayout::out_in;
    args.dx = dx + first * width();
    args.dx_stride = width();
    args.dweight = layer.table->gradient().data();
    if (layer.bias != nullptr) args.dbias = layer.bias->gradient().data();
    ops::linear_backward(x.device(), args);
  }
};

// Calls each(slice, memory for its logits) for all rows of x.
template <typename Each>
void for_slices(const Tensor& x, const VocabularyLayer& layer, Each&& each) {
  if (x.rows() == 0) return;
  const std::int64_t vocabulary = layer.table->shape[0], most = std::min(x.rows(), vocabulary_slice(vocabulary));
  const Tensor z = Tensor::empty({most, vocabulary}, Purpose::scratch, x.device());
  for (std::int64_t first = 0; first < x.rows(); first += most) {
    each(Slice{x, layer, first, std::min(most, x.rows() - first)}, z.data());
  }
}

struct Wanted {
  const double* scale;  // of the gradients; null: none
  double smoothing;
};

VocabularyResult loss(const Tensor& x, const VocabularyLayer& layer, std::span<const std::int32_t> labels,
                      const Wanted& wanted) {
  const auto [scale, smoothing] = wanted;
  check(x, layer, std::ssize(labels));
  VocabularyResult result;
  const std::size_t count = labels.size();
  result.losses.resize(count);
  result.best.resize(count);
  result.best_log_p.resize(count);
  if (smoothing != 0) result.smoothed.resize(count);
  if (scale != nullptr) result.dx = Tensor::empty(x.shape(), Purpose::activations, x.device());
  for_slices(x, layer, [&](const Slice& slice, float* z) {
    slice.logits(z, scale == nullptr ? layer.packed : nullptr);
    ops::vocabulary_softmax(x.device(), {.rows = slice.rows,
                                         .vocabulary = slice.vocabulary(),
                                         .z = z,
                                         .labels = labels.data() + slice.first,
                                         .gradient = scale != nullptr,
                                         .scale = scale != nullptr ? *scale : 1,
                                         .losses = result.losses.data() + slice.first,
                                         .best = result.best.data() + slice.first,
                                         .best_log_p = result.best_log_p.data() + slice.first,
                                         .smoothing = smoothing,
                                         .smoothed = smoothing != 0 ? result.smoothed.data() + slice.first : nullptr});
    if (scale != nullptr) slice.gradients(z, result.dx.data());
  });
  return result;
}

}  // namespace

std::int64_t vocabulary_slice(std::int64_t vocabulary) {
  constexpr std::int64_t kMost = 1024, kSummed = 512, kTile = 64, kMostLogits = std::int64_t{1} << 25;
  const std::int64_t rows = std::clamp(kMostLogits / vocabulary, kTile, kMost);
  return rows >= kSummed ? rows / kSummed * kSummed : rows / kTile * kTile;
}

VocabularyResult vocabulary_loss(const Tensor& x, const VocabularyLayer& layer, std::span<const std::int32_t> labels,
                                 double smoothing) {
  return loss(x, layer, labels, {nullptr, smoothing});
}

VocabularyResult vocabulary_loss_with_gradients(const Tensor& x, const VocabularyLayer& layer,
                                                std::span<const std::int32_t> labels, double scale, double smoothing) {
  return loss(x, layer, labels, {&scale, smoothing});
}

Tensor vocabulary_logits(const Tensor& x, const VocabularyLayer& layer) {
  check(x, layer, x.rows());
  const Tensor z = Tensor::empty({x.rows(), layer.table->shape[0]}, Purpose::scratch, x.device());
  if (x.rows() > 0) Slice{x, layer, 0, x.rows()}.logits(z.data(), layer.packed);
  return z;
}

std::vector<std::vector<VocabularyChoice>> vocabulary_choices(const Tensor& x, const VocabularyLayer& layer,
                                                              std::int64_t k) {
  check(x, layer, x.rows());
  if (k < 1 || k > layer.table->shape[0]) fail(kWhere, "k: expected 1 to {}, got {}", layer.table->shape[0], k);
  std::vector<std::vector<VocabularyChoice>> all;
  for_slices(x, layer, [&](const Slice& slice, float* z) {
    slice.logits(z, layer.packed);
    std::vector<std::int64_t> offsets;  // a row of logits is a segment of one column
    for (std::int64_t i = 0; i <= slice.rows; ++i) offsets.push_back(i * slice.vocabulary());
    std::vector<ops::Ranked> top(static_cast<std::size_t>(slice.rows * k));
    ops::top_k(x.device(),
               {.segments = slice.rows, .cols = 1, .k = k, .offsets = offsets.data(), .z = z, .top = top.data()});
    // The softmax with any label gives the best entry's probability; the others follow from differences of the logits.
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(slice.rows));
    std::vector<double> losses(labels.size()), best_log_p(labels.size());
    ops::vocabulary_softmax(x.device(), {.rows = slice.rows,
                                         .vocabulary = slice.vocabulary(),
                                         .z = z,
                                         .labels = labels.data(),
                                         .losses = losses.data(),
                                         .best_log_p = best_log_p.data()});
    for (std::int64_t i = 0; i < slice.rows; ++i) {
      const ops::Ranked* row = top.data() + i * k;
      std::vector<VocabularyChoice>& choices = all.emplace_back();
      for (std::int64_t j = 0; j < k; ++j) {
        const double distance = static_cast<double>(row[j].value) - static_cast<double>(row[0].value);
        choices.push_back({row[j].row, std::exp(best_log_p[static_cast<std::size_t>(i)] + distance)});
      }
    }
  });
  return all;
}

}  // namespace etc

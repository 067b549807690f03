#include "tasks/pretrain/loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "etc_core/ops/linear.h"
#include "tasks/span/loss.h"

namespace etc::pretrain {

namespace {

// Normalises rows to length 1 and keeps the reciprocals of their lengths.
class UnitRows {
 public:
  UnitRows(const float* rows, std::int64_t count, std::int64_t width)
      : width_(static_cast<std::size_t>(width)), rows_(rows, rows + count * width) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<float> x = row(i);
      const double length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
      inverse_.push_back(length > 0 ? 1 / length : 0);
      for (float& number : x) number = static_cast<float>(number * inverse_.back());
    }
  }

  const float* data() const { return rows_.data(); }

  // forward: u = x/|x|; so dx = (du − u·(u·du)) / |x|, written over du.
  void backward(float* gradients) {
    for (std::size_t i = 0; i < inverse_.size(); ++i) {
      const std::span<float> du(gradients + i * width_, width_), u = row(static_cast<std::int64_t>(i));
      const double along = std::inner_product(u.begin(), u.end(), du.begin(), 0.0);
      for (std::size_t k = 0; k < width_; ++k) du[k] = static_cast<float>((du[k] - u[k] * along) * inverse_[i]);
    }
  }

 private:
  std::span<float> row(std::int64_t i) { return {rows_.data() + static_cast<std::size_t>(i) * width_, width_}; }

  std::size_t width_;
  std::vector<float> rows_;      // [m, H]
  std::vector<double> inverse_;  // [m] 1/|x|, 0 for a row of zeros
};

// The similarities as one matrix product with a factor.
struct Product {
  std::int64_t sentences, width;
  const float *c, *t;
  float factor;

  std::vector<float> logits() const {
    std::vector<float> s(static_cast<std::size_t>(sentences * sentences));  // [m, m]
    ops::LinearForward args{.rows = sentences, .in = width, .out = sentences, .x = c, .x_stride = width};
    args.weight = t;
    args.layout = ops::WeightLayout::out_in;
    args.y = s.data();
    args.y_stride = sentences;
    ops::linear(Device::cpu, args);
    for (float& number : s) number *= factor;
    return s;
  }

  // forward: s = factor·c·tᵀ; so dc = factor·ds·t, dt = factor·dsᵀ·c.
  void gradients(std::vector<float> ds, float* dc, float* dt) const {
    for (float& number : ds) number *= factor;
    ops::LinearBackward args{.rows = sentences, .in = width, .out = sentences, .dz = ds.data(), .dz_stride = sentences};
    args.x = c;
    args.x_stride = width;
    args.weight = t;
    args.layout = ops::WeightLayout::out_in;
    args.dx = dc;
    args.dx_stride = width;
    args.dweight = dt;
    if (dt != nullptr) std::fill(dt, dt + sentences * width, 0.0f);
    ops::linear_backward(Device::cpu, args);
  }
};

bool own_is_best(std::span<const float> row, std::int64_t own) {
  return std::max_element(row.begin(), row.end()) - row.begin() == own;
}

}  // namespace

CpcResult cpc_loss(const CpcLoss& args) {
  CpcResult result;
  const std::int64_t m = args.sentences;
  if (m == 0) return result;
  const bool cosine = args.similarity == CpcSimilarity::cosine;
  UnitRows c(args.predicted, cosine ? m : 0, args.width), t(args.target, cosine ? m : 0, args.width);
  double factor = 1 / args.temperature;
  if (args.similarity == CpcSimilarity::scaled_dot) factor /= std::sqrt(static_cast<double>(args.width));
  const Product product{m, args.width, cosine ? c.data() : args.predicted, cosine ? t.data() : args.target,
                        static_cast<float>(factor)};
  result.logits = product.logits();

  std::vector<std::int64_t> labels(static_cast<std::size_t>(m));
  std::iota(labels.begin(), labels.end(), std::int64_t{0});
  const bool gradients = args.dpredicted != nullptr || args.dtarget != nullptr;
  std::vector<float> dlogits(gradients ? result.logits.size() : 0);  // [m, m]
  result.losses =
      span::class_losses({result.logits.data(), m, labels, args.scale, gradients ? dlogits.data() : nullptr});
  for (std::int64_t i = 0; i < m; ++i) {
    result.own_is_best.push_back(own_is_best({result.logits.data() + i * m, static_cast<std::size_t>(m)}, i));
  }
  if (!gradients) return result;
  product.gradients(std::move(dlogits), args.dpredicted, args.dtarget);
  if (cosine && args.dpredicted != nullptr) c.backward(args.dpredicted);
  if (cosine && args.dtarget != nullptr) t.backward(args.dtarget);
  return result;
}

}  // namespace etc::pretrain

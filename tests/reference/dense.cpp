#include "tests/reference/dense.h"

#include <cmath>
#include <numbers>

#include "etc_core/base/error.h"

namespace etc::test {

namespace {

std::size_t at(std::int64_t row, std::int64_t col, std::int64_t cols) {
  return static_cast<std::size_t>(row * cols + col);
}

}  // namespace

Reals matrix_product(const Reals& a, const Reals& b, std::int64_t m, std::int64_t k, std::int64_t n) {
  Reals c(static_cast<std::size_t>(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) c[at(i, j, n)] += a[at(i, l, k)] * b[at(l, j, n)];
    }
  }
  return c;
}

Reals transposed(const Reals& a, std::int64_t rows, std::int64_t cols) {
  Reals result(a.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) result[at(j, i, rows)] = a[at(i, j, cols)];
  }
  return result;
}

double reference_activation(const std::string& name, double x) {
  if (name == "relu") return x > 0 ? x : 0;
  if (name == "tanh") return std::tanh(x);
  if (name == "linear") return x;
  if (name == "gelu") return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  if (name == "gelu_erf") return x * std::erfc(-x / std::numbers::sqrt2) / 2;
  fail("reference", "no activation {}", name);
}

double reference_activation_gradient(const std::string& name, double x) {
  if (name == "relu") return x > 0 ? 1 : 0;
  if (name == "tanh") return 1 - std::tanh(x) * std::tanh(x);
  if (name == "linear") return 1;
  if (name == "gelu") {
    const double c = std::sqrt(2 / std::numbers::pi);
    const double t = std::tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
  }
  if (name == "gelu_erf") {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    return std::erfc(-x / std::numbers::sqrt2) / 2 + x * density;
  }
  fail("reference", "no activation {}", name);
}

Reals reference_layer_norm(const Reals& x, const Reals& gamma, const Reals& beta, std::int64_t rows, std::int64_t cols,
                           const ReferenceNorm& norm) {
  Reals y(x.size());
  const auto n = static_cast<double>(cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    double mean = 0, variance = 0;
    for (std::int64_t j = 0; j < cols; ++j) mean += norm.centred ? x[at(i, j, cols)] / n : 0;
    for (std::int64_t j = 0; j < cols; ++j) variance += std::pow(x[at(i, j, cols)] - mean, 2) / n;
    for (std::int64_t j = 0; j < cols; ++j) {
      y[at(i, j, cols)] =
          (x[at(i, j, cols)] - mean) / std::sqrt(variance + norm.epsilon) * gamma[static_cast<std::size_t>(j)] +
          beta[static_cast<std::size_t>(j)];
    }
  }
  return y;
}

double reference_cross_entropy(const Reals& logits, const Reals& target) {
  double largest = -INFINITY, sum = 0, loss = 0;
  for (const double z : logits) largest = std::max(largest, z);
  for (const double z : logits) sum += std::exp(z - largest);
  for (std::size_t i = 0; i < logits.size(); ++i) loss -= target[i] * (logits[i] - largest - std::log(sum));
  return loss;
}

Reals central_differences(const std::function<double(const Reals&)>& f, Reals x, double step) {
  Reals gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    x[i] = value + step;
    const double above = f(x);
    x[i] = value - step;
    const double below = f(x);
    x[i] = value;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

Reals to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

Reals magnitudes(const std::vector<float>& values) {
  Reals result;
  for (const float value : values) result.push_back(std::fabs(static_cast<double>(value)));
  return result;
}

double inner_product(const Reals& x, const Reals& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace etc::test

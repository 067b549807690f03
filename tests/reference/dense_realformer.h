// A single-sequence transformer encoder with residual attention scores, dense and in double, written only from etc-core
// 5.1, 6.1, 9.1: the reference for an ETC whose window covers everything (invariants 1 and 29).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace etc::reference::realformer {

using Matrix = std::vector<std::vector<double>>;

inline Matrix dense(const Matrix& x, const Matrix& kernel, const std::vector<double>& bias) {
  Matrix y(x.size(), bias);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < kernel.size(); ++k) {
      for (std::size_t j = 0; j < bias.size(); ++j) y[i][j] += x[i][k] * kernel[k][j];
    }
  }
  return y;
}

inline Matrix layer_norm(Matrix x, const std::vector<double>& gamma, const std::vector<double>& beta) {
  for (std::vector<double>& row : x) {
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / static_cast<double>(row.size());
    for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
    for (std::size_t j = 0; j < row.size(); ++j)
      row[j] = (row[j] - mean) / std::sqrt(variance + 1e-12) * gamma[j] + beta[j];
  }
  return x;
}

inline Matrix sum(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) a[i][j] += b[i][j];
  }
  return a;
}

struct DenseLayer {
  Matrix query, key, value, output, inner, outer;
  std::vector<double> query_bias, key_bias, value_bias, output_bias, inner_bias, outer_bias;
  std::vector<double> gamma, beta, outer_gamma, outer_beta;
};

struct DenseOptions {
  std::size_t heads = 1;
  bool residual = false, mean = false, pre_activation_order = false;
  std::function<double(double)> activation;
};

// The scores carried so far, [heads][queries][keys]; grows on the first layer.
using Carried = std::vector<Matrix>;

inline Matrix attention(const Matrix& x, const DenseLayer& layer, const DenseOptions& options, std::size_t index,
                        Carried& carried) {
  const Matrix q = dense(x, layer.query, layer.query_bias), k = dense(x, layer.key, layer.key_bias),
               v = dense(x, layer.value, layer.value_bias);
  const std::size_t n = x.size(), width = layer.query_bias.size(), size = width / options.heads;
  Matrix out(n, std::vector<double>(width, 0));
  carried.resize(options.heads, Matrix(n, std::vector<double>(n, 0)));
  for (std::size_t head = 0; head < options.heads; ++head) {
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> p(n);
      double largest = -1e300, total = 0;
      for (std::size_t j = 0; j < n; ++j) {
        double s = 0;
        for (std::size_t c = head * size; c < (head + 1) * size; ++c) s += q[i][c] * k[j][c];
        s /= std::sqrt(static_cast<double>(size));
        double& carry = carried[head][i][j];
        carry = options.residual ? carry + s : s;
        p[j] = options.residual && options.mean ? carry / static_cast<double>(index + 1) : carry;
        largest = std::max(largest, p[j]);
      }
      for (double& one : p) total += one = std::exp(one - largest);
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t c = head * size; c < (head + 1) * size; ++c) out[i][c] += p[j] / total * v[j][c];
      }
    }
  }
  return dense(out, layer.output, layer.output_bias);
}

inline Matrix encode(Matrix x, const std::vector<DenseLayer>& layers, const DenseOptions& options) {
  Carried carried;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    const DenseLayer& layer = layers[index];
    const auto feed_forward = [&](const Matrix& y) {
      Matrix h = dense(y, layer.inner, layer.inner_bias);
      for (std::vector<double>& row : h) std::transform(row.begin(), row.end(), row.begin(), options.activation);
      return dense(h, layer.outer, layer.outer_bias);
    };
    if (options.pre_activation_order) {
      const Matrix y = sum(x, attention(layer_norm(x, layer.gamma, layer.beta), layer, options, index, carried));
      x = sum(y, feed_forward(layer_norm(y, layer.outer_gamma, layer.outer_beta)));
    } else {
      const Matrix y = layer_norm(sum(x, attention(x, layer, options, index, carried)), layer.gamma, layer.beta);
      x = layer_norm(sum(y, feed_forward(y)), layer.outer_gamma, layer.outer_beta);
    }
  }
  return x;
}

}  // namespace etc::reference::realformer

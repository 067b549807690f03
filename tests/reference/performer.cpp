#include "tests/reference/performer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace etc::reference {

namespace {

// w_r·x' of all rows [rows, N, m], and |x'|^2/2 [rows, N].
struct Projected {
  std::vector<double> u, half;
};

double dot(const std::vector<double>& a, std::int64_t a_at, const std::vector<double>& b, std::int64_t b_at,
           std::int64_t size) {
  // Unlike a loop it adds several terms at once, and gradients by differences need a million of them.
  return std::transform_reduce(a.begin() + a_at, a.begin() + a_at + size, b.begin() + b_at, 0.0);
}

Projected project(const Performer& p, const std::vector<double>& x) {
  Projected all;
  const double scale = p.score_scale > 0 ? std::sqrt(p.score_scale) : std::pow(static_cast<double>(p.head_size), -0.25);
  for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(p.head_size)) {
    double squares = 0.0;
    for (std::int64_t c = 0; c < p.head_size; ++c) squares += std::pow(scale * x[at + static_cast<std::size_t>(c)], 2);
    all.half.push_back(squares / 2.0);
    for (std::int64_t r = 0; r < p.features; ++r) {
      all.u.push_back(scale * dot(p.projection, r * p.head_size, x, static_cast<std::int64_t>(at), p.head_size));
    }
  }
  return all;
}

// exp(u - h - maximum) + 1e-6, or exp(u - h), over sqrt(m).
double feature(const Performer& p, double u, double half, double maximum) {
  const double e = p.stabilised ? std::exp(u - half - maximum) + 1e-6 : std::exp(u - half);
  return e / std::sqrt(static_cast<double>(p.features));
}

}  // namespace

std::vector<double> query_features(const Performer& p) {
  const Projected all = project(p, p.q);
  std::vector<double> features;
  const auto m = static_cast<std::size_t>(p.features);
  for (std::size_t row = 0; row < all.half.size(); ++row) {
    const auto first = all.u.begin() + static_cast<std::ptrdiff_t>(row * m);
    const double maximum = *std::max_element(first, first + p.features);
    for (std::size_t r = 0; r < m; ++r) features.push_back(feature(p, all.u[row * m + r], all.half[row], maximum));
  }
  return features;
}

std::vector<double> key_features(const Performer& p) {
  const Projected all = project(p, p.k);
  std::vector<double> features(all.u.size());
  for (std::size_t b = 0; b + 1 < p.key_offsets.size(); ++b) {
    for (std::int64_t head = 0; head < p.heads; ++head) {
      double maximum = -std::numeric_limits<double>::infinity();
      for (const bool find : {true, false}) {
        for (std::int64_t key = p.key_offsets[b]; key < p.key_offsets[b + 1]; ++key) {
          const auto row = static_cast<std::size_t>(key * p.heads + head);
          for (std::size_t r = 0; r < static_cast<std::size_t>(p.features); ++r) {
            const std::size_t at = row * static_cast<std::size_t>(p.features) + r;
            if (find) {
              maximum = std::max(maximum, all.u[at]);
            } else {
              features[at] = feature(p, all.u[at], all.half[row], maximum);
            }
          }
        }
      }
    }
  }
  return features;
}

std::vector<double> performer(const Performer& p) {
  const std::vector<double> of_queries = query_features(p), of_keys = key_features(p);
  std::vector<double> out(p.q.size(), 0.0);
  for (std::size_t b = 0; b + 1 < p.query_offsets.size(); ++b) {
    for (std::int64_t i = p.query_offsets[b]; i < p.query_offsets[b + 1]; ++i) {
      for (std::int64_t head = 0; head < p.heads; ++head) {
        const std::int64_t query = i * p.heads + head;
        double* const row = out.data() + query * p.head_size;
        double denominator = 0.0;
        const std::int64_t end = p.causal ? i + 1 : p.key_offsets[b + 1];
        for (std::int64_t j = p.key_offsets[b]; j < end; ++j) {
          const std::int64_t key = j * p.heads + head;
          const double weight = dot(of_queries, query * p.features, of_keys, key * p.features, p.features);
          denominator += weight;
          const double* const value = p.v.data() + key * p.head_size;
          for (std::int64_t c = 0; c < p.head_size; ++c) row[c] += weight * value[c];
        }
        for (std::int64_t c = 0; c < p.head_size && denominator > 0.0; ++c) row[c] /= denominator;
      }
    }
  }
  return out;
}

}  // namespace etc::reference

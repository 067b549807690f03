// Dense operators in double, straight from the formulas, for tests. Shares no code with the library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace etc::test {

using Reals = std::vector<double>;

// c [m, n] = a [m, k]·b [k, n]
Reals matrix_product(const Reals& a, const Reals& b, std::int64_t m, std::int64_t k, std::int64_t n);
Reals transposed(const Reals& a, std::int64_t rows, std::int64_t cols);

double reference_activation(const std::string& name, double x);
double reference_activation_gradient(const std::string& name, double x);

// y [rows, cols] = (x − mean)/sqrt(var + epsilon)·gamma + beta; not centred: mean = 0
struct ReferenceNorm {
  double epsilon = 1e-12;
  bool centred = true;
};
Reals reference_layer_norm(const Reals& x, const Reals& gamma, const Reals& beta, std::int64_t rows, std::int64_t cols,
                           const ReferenceNorm& norm = {});

// −sum t·log softmax(logits)
double reference_cross_entropy(const Reals& logits, const Reals& target);

// d f / d x by central differences, one element after the other.
Reals central_differences(const std::function<double(const Reals&)>& f, Reals x, double step = 1e-5);

Reals to_double(const std::vector<float>& values);

// |x| of every element. A linear operator applied to magnitudes gives, for each result, the sum of its terms' magnitudes,
// to which rounding errors are relative.
Reals magnitudes(const std::vector<float>& values);

// sum of x·y
double inner_product(const Reals& x, const Reals& y);

}  // namespace etc::test

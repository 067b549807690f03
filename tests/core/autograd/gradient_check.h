// Gradients by central differences, for functions on a tape.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/random.h"
#include "tests/support/catch.h"

namespace etc::test {

// Numbers in (-1, 1), the same in every run.
inline Tensor noise(std::vector<std::int64_t> shape, std::uint64_t key) {
  Tensor tensor = Tensor::empty(std::move(shape), Purpose::activations);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data()[i] = 2 * uniform_from_bits(philox({static_cast<std::uint32_t>(i), 0, 0, 0}, key)[0]) - 1;
  }
  return tensor;
}

// sum of w·y over all results, with fixed weights w, in double.
inline double weighted_sum(const std::vector<Var>& results) {
  double sum = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Tensor w = noise(results[k].value().shape(), 1000 + k);
    for (std::int64_t i = 0; i < w.size(); ++i) sum += static_cast<double>(w.data()[i]) * results[k].value().data()[i];
  }
  return sum;
}

inline void seed_weighted_sum(std::vector<Var>& results) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Tensor w = noise(results[k].value().shape(), 1000 + k);
    Tensor& grad = results[k].grad();
    for (std::int64_t i = 0; i < w.size(); ++i) grad.data()[i] = w.data()[i];
  }
}

// d(weighted sum)/dx[i] by central differences; x is restored.
inline double numeric_derivative(const std::function<double()>& loss, float& x, float step) {
  const float old = x;
  x = old + step;
  const float up = x;
  const double above = loss();
  x = old - step;
  const float down = x;
  const double below = loss();
  x = old;
  return (above - below) / (static_cast<double>(up) - down);
}

// Checks the gradients of all inputs and parameters of fn against central differences of its weighted sum. With step h
// the difference quotient is off by h²/6·f''' and by the rounding of fp32, about 1e-7·|f|/h: with h = 1e-2 both are
// below `tolerance` relative to the largest derivative.
inline void check_gradients(const std::function<std::vector<Var>(Tape&, const std::vector<Var>&)>& fn,
                            const std::vector<Tensor>& inputs, const std::vector<Parameter*>& parameters,
                            double tolerance = 3e-3, float step = 1e-2f) {
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.push_back(Var(input, true));
  for (Parameter* parameter : parameters) parameter->grad = Tensor();
  Tape tape(Recording::on);
  {
    std::vector<Var> results = fn(tape, leaves);
    seed_weighted_sum(results);
  }
  tape.backward();
  const auto loss = [&] {
    Tape silent(Recording::off);
    std::vector<Var> values;
    for (const Tensor& input : inputs) values.push_back(Var(input));
    return weighted_sum(fn(silent, values));
  };
  struct Checked {
    std::string name;
    Tensor value, gradient;
  };
  std::vector<Checked> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    REQUIRE(leaves[i].has_grad());
    all.push_back({"input " + std::to_string(i), inputs[i], leaves[i].grad()});
  }
  for (Parameter* parameter : parameters) {
    CAPTURE(parameter->name);
    REQUIRE(parameter->grad);
    all.push_back({parameter->name, parameter->value, parameter->grad});
  }
  double largest = 0;
  for (const Checked& one : all) {
    for (std::int64_t i = 0; i < one.value.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(one.gradient.data()[i])));
    }
  }
  for (const Checked& one : all) {
    for (std::int64_t i = 0; i < one.value.size(); ++i) {
      const double numeric = numeric_derivative(loss, one.value.data()[i], step);
      const double error = std::abs(numeric - one.gradient.data()[i]);
      if (error > tolerance * largest) {
        CAPTURE(one.name, i, numeric, one.gradient.data()[i], largest);
        REQUIRE(error <= tolerance * largest);
      }
    }
  }
}

}  // namespace etc::test

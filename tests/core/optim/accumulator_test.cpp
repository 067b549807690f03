#include "etc_core/optim/accumulator.h"

#include <cmath>
#include <cstring>
#include <random>

#include "etc_core/base/parallel.h"
#include "etc_core/ops/register.h"
#include "tests/support/catch.h"

using namespace etc;

namespace {

[[maybe_unused]] const bool kOpsOfAccumulator = (ops::register_cpu_ops(), true);

Tensor filled(std::int64_t n, float value) {
  return Tensor::from(std::vector<float>(static_cast<std::size_t>(n), value), {n}, Purpose::gradients);
}

// Values whose fp32 sums depend on the order.
std::vector<float> micro_batches(int n) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(uniform(random) * std::pow(10.0f, static_cast<float>(i % 5)));
  return values;
}

// The tree over [first, last): the largest power of two on the left.
float tree(const std::vector<float>& values, std::size_t first, std::size_t last) {
  if (last - first == 1) return values[first];
  std::size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return tree(values, first, first + half) + tree(values, first + half, last);
}

std::int64_t gradient_bytes() {
  return memory_ledger::report().current[static_cast<int>(Purpose::gradients)];
}

}  // namespace

TEST_CASE("micro-batches are summed as a tree of neighbours for any number of them", "[optim]") {
  for (int n : {1, 2, 3, 4, 5, 7, 8, 13, 32}) {
    const std::vector<float> values = micro_batches(n);
    GradientAccumulator accumulator;
    for (int i = 0; i < n; ++i) accumulator.add(i, {filled(3, values[static_cast<std::size_t>(i)])});
    const GradientSet total = accumulator.finish();
    CAPTURE(n);
    REQUIRE(total[0].data()[2] == tree(values, 0, values.size()));
    REQUIRE(accumulator.finish().empty());
  }
}

TEST_CASE("the tree splits anywhere: roots of one part go on where those of the part before stopped", "[optim]") {
  const std::vector<float> values = micro_batches(11);
  const float whole = tree(values, 0, values.size());
  for (std::size_t cut = 0; cut <= values.size(); ++cut) {
    GradientAccumulator left, right;
    for (std::size_t i = 0; i < values.size(); ++i) {
      (i < cut ? left : right).add(static_cast<std::int64_t>(i), {filled(1, values[i])});
    }
    GradientAccumulator::Tree joined{GradientAccumulator::Add{0}};
    for (const auto& [part, leaves] : {std::pair(&left, cut), std::pair(&right, values.size() - cut)}) {
      if (leaves == 0) continue;
      for (const auto& root : part->roots(0)) joined.push(root.node, root.value);
    }
    CAPTURE(cut);
    REQUIRE(joined.finish()->data()[0] == whole);
  }
}

TEST_CASE("a parameter without gradient in some micro-batches keeps those of the others", "[optim]") {
  GradientAccumulator accumulator;
  accumulator.add(0, {filled(2, 1), Tensor(), Tensor()});
  accumulator.add(1, {Tensor(), filled(2, 5), Tensor()});
  accumulator.add(2, {filled(2, 3), filled(2, 7), Tensor()});
  const GradientSet total = accumulator.finish();
  REQUIRE(total[0].data()[0] == 4);
  REQUIRE(total[1].data()[1] == 12);
  REQUIRE_FALSE(total[2]);
}

TEST_CASE("one micro-batch is handed through without a copy", "[optim]") {
  const Tensor gradient = filled(4, 2);
  GradientAccumulator accumulator;
  accumulator.add(0, {gradient});
  REQUIRE(accumulator.finish()[0].shares_memory_with(gradient));
  REQUIRE(accumulator.finish().empty());
}

TEST_CASE("the accumulator holds no more than one set per level", "[optim]") {
  const std::int64_t before = gradient_bytes(), set = 64 * 4;
  GradientAccumulator accumulator;
  std::int64_t most = 0;
  for (int i = 0; i < 32; ++i) {
    accumulator.add(i, {filled(64, 1)});
    most = std::max(most, gradient_bytes() - before);
  }
  REQUIRE(most == 5 * set);  // after the 31st: 16+8+4+2+1
  REQUIRE(gradient_bytes() - before == set);
}

TEST_CASE("accumulated gradients have the same bits for 1, 2 and 4 threads", "[optim]") {
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 4}) {
    set_thread_count(threads);
    GradientAccumulator accumulator;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 5; ++i) {
      std::vector<float> values(50001);
      for (float& value : values) value = normal(random);
      accumulator.add(i, {Tensor::from(values, {50001}, Purpose::gradients)});
    }
    const GradientSet total = accumulator.finish();
    results.emplace_back(total[0].data(), total[0].data() + total[0].size());
  }
  set_thread_count(2);
  REQUIRE(std::memcmp(results[0].data(), results[1].data(), results[0].size() * 4) == 0);
  REQUIRE(std::memcmp(results[0].data(), results[2].data(), results[0].size() * 4) == 0);
}

TEST_CASE("a model's parameters get one gradient each, or none", "[optim]") {
  ParameterSet parameters;
  parameters.add("a", {2}, {});
  parameters.add("b", {1}, {}).gradient();
  put_gradients(parameters, {filled(2, 3), Tensor()});
  REQUIRE(parameters.at("a").grad.data()[0] == 3);
  REQUIRE_FALSE(parameters.at("b").grad);
  REQUIRE_THROWS_WITH(put_gradients(parameters, {}), "gradients: expected the gradients of 2 parameters, got 0");
}

TEST_CASE("gradients whose number or size changes are errors", "[optim]") {
  GradientAccumulator accumulator;
  accumulator.add(0, {filled(2, 1)});
  REQUIRE_THROWS_WITH(accumulator.add(1, {filled(2, 1), filled(2, 1)}),
                      "gradients: expected the gradients of 1 parameters, got 2");
  GradientAccumulator other;
  other.add(0, {filled(2, 1)});
  REQUIRE_THROWS_WITH(other.add(1, {filled(3, 1)}), "gradients: parameter 0 must keep its size: [2], then [3]");
}

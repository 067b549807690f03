// The query biases of Transformer-XL's relative positions.
#include "etc_core/autograd/position_bias.h"

#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;

namespace {

Parameter bias(const std::string& name, std::vector<std::int64_t> shape, std::uint64_t key) {
  Parameter parameter{name, shape, {}, noise(shape, key), {}, 0};
  return parameter;
}

}  // namespace

TEST_CASE("the bias of a position is the difference of the query biases times its vector", "[autograd]") {
  register_cpu_backend();
  Parameter u = bias("u", {2, 3}, 1), v = bias("v", {2, 3}, 2);
  const Tensor rel = noise({5, 6}, 3);
  Tape tape(Recording::off);
  for (const bool content : {false, true}) {
    const Var y = position_bias(tape, Var(rel), 2, {content ? &u : nullptr, &v});
    for (std::int64_t r = 0; r < 5; ++r) {
      for (std::int64_t n = 0; n < 2; ++n) {
        double expected = 0;
        for (std::int64_t c = n * 3; c < n * 3 + 3; ++c) {
          const double by = v.value.data()[c] - (content ? u.value.data()[c] : 0.0f);
          expected += by * static_cast<double>(rel.data()[r * 6 + c]);
        }
        CHECK(std::abs(static_cast<double>(y.value().data()[r * 2 + n]) - expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("gradients of position biases are those of the formula, for any number of threads", "[autograd]") {
  register_cpu_backend();
  Parameter u = bias("u", {2, 3}, 1), v = bias("v", {2, 3}, 2);
  const auto function = [&](Tape& tape, const std::vector<Var>& inputs) {
    return std::vector<Var>{position_bias(tape, inputs[0], 2, {&u, &v})};
  };
  const int before = thread_count();
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    check_gradients(function, {noise({40, 6}, 3)}, {&u, &v});
    const std::vector<float> own(v.grad.data(), v.grad.data() + v.grad.size());
    if (first.empty()) first = own;
    CHECK(own == first);
  }
  set_thread_count(before);
}

TEST_CASE("position biases that fit no table are refused", "[autograd]") {
  Parameter u = bias("u", {2, 3}, 1), v = bias("v", {5}, 2);
  Tape tape(Recording::off);
  CHECK_THROWS_WITH(position_bias(tape, Var(noise({4, 7}, 3)), 2, {}),
                    Catch::Contains("position_bias: rel: expected [R, N·D] with N=2, got [4, 7]"));
  CHECK_THROWS_WITH(position_bias(tape, Var(noise({4, 6}, 3)), 2, {&u, &v}),
                    Catch::Contains("v: expected N·D=6 numbers, got 5"));
}

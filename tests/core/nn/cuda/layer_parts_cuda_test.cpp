// Dense layers of several parts in bf16 on the CUDA backend, with kernels run by the emulator: a common bf16 array is
// used only if each part can read its columns of it.
#include <algorithm>
#include <cmath>
#include <string>

#include "etc_core/autograd/functions.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/parameters.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace etc {
namespace {

constexpr std::int64_t kRows = 5, kIn = 16;
using Widths = std::vector<std::int64_t>;

// Two layers with initial parameters on a device; the first has parts of the given widths.
struct Layers {
  Layers(const Widths& widths, Device device, ComputeType compute) {
    constexpr Initializer kNormal{Initializer::Kind::truncated_normal, 0.5f};
    for (const std::int64_t width : widths) {
      const std::string name = "part_" + std::to_string(parts.parts.size());
      parts.parts.push_back(
          {&set.add(name + "/kernel", {kIn, width}, kNormal), &set.add(name + "/bias", {width}, kNormal)});
    }
    after.parts = {{&set.add("after/kernel", {parts.out(), kIn}, kNormal), nullptr}};
    parts.compute = after.compute = compute;
    set.initialize(1);
    set.to(device);
  }
  ParameterSet set;
  Dense parts, after;
};

struct Result {
  std::vector<float> y, dx;  // for every parameter:
  std::vector<std::vector<float>> gradients;
  ElementType type;  // of the gradient of y
};

std::vector<float> values(const Tensor& of) {
  const Tensor host = of.to(Device::cpu);
  return {host.data(), host.data() + host.size()};
}

// The first layer, or the first, tanh and the second one, forward and backward.
Result run(const Widths& widths, bool both, Device device, ComputeType compute) {
  Layers layers(widths, device, compute);
  Var x(Tensor::from(test::random_floats(kRows * kIn, 2), {kRows, kIn}, Purpose::activations).to(device), true);
  Tape tape(Recording::on);
  Result result;
  {
    const Var y =
        both ? feed_forward(tape, x, layers.parts, ops::Activation::tanh, layers.after) : linear(tape, x, layers.parts);
    result.y = values(y.value());
    result.type = y.gradient()->type();
    const std::vector<float> dy = test::random_floats(y.value().size(), 3);
    y.gradient()->add(Tensor::from(dy, y.value().shape(), Purpose::activations).to(device));
  }
  tape.backward();
  result.dx = values(x.grad());
  for (const auto& parameter : layers.set.all()) {
    if (parameter->grad) result.gradients.push_back(values(parameter->grad));
  }
  return result;
}

// Two factors with relative errors of up to 2^-9, in at most four successive products, give an error of 2^-6 relative
// to the terms of sums, which may be twice the largest sum.
void check_near(const Result& got, const Result& exact) {
  const auto near_those = [](const char* what, const std::vector<float>& some, const std::vector<float>& expected) {
    float largest = 0;
    for (const float value : expected) largest = std::max(largest, std::abs(value));
    return test::near_all(what, some, {expected.begin(), expected.end()}, largest * 0x1p-5);
  };
  CHECK(near_those("y", got.y, exact.y));
  CHECK(near_those("dx", got.dx, exact.dx));
  REQUIRE(got.gradients.size() == exact.gradients.size());
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    CHECK(near_those("gradient of a parameter", got.gradients[i], exact.gradients[i]));
  }
}

TEST_CASE("the gradient of a layer of parts is bf16 where every part is a multiple of 8 wide, else fp32",
          "[autograd][cuda]") {
  register_cpu_backend();
  register_cuda_backend();
  for (const auto& [widths, type] : {std::pair(Widths{16}, ElementType::bf16),
                                     {Widths{8, 16}, ElementType::bf16},
                                     {Widths{4, 12}, ElementType::fp32},
                                     {Widths{8, 12, 4}, ElementType::fp32},
                                     {Widths{12}, ElementType::fp32}}) {
    CAPTURE(widths);
    const Result got = run(widths, false, Device::cuda, ComputeType::bf16);
    CHECK(got.type == type);
    check_near(got, run(widths, false, Device::cpu, ComputeType::fp32));
  }
}

TEST_CASE("a feed-forward layer of parts trains in bf16, however wide they are", "[autograd][cuda]") {
  register_cpu_backend();
  register_cuda_backend();
  for (const Widths& widths : {Widths{8, 16}, Widths{4, 12}, Widths{20, 20}}) {
    CAPTURE(widths);
    check_near(run(widths, true, Device::cuda, ComputeType::bf16), run(widths, true, Device::cpu, ComputeType::fp32));
  }
}

}  // namespace
}  // namespace etc

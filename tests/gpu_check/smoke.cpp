// Checks that there is a device that computes at all.
#include <cmath>

#include "etc_core/base/device_state.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/linear.h"
#include "tests/gpu_check/device_arrays.h"
#include "tests/gpu_check/stages.h"
#include "tests/support/worst.h"

namespace etc::gpu_check {

void smoke(Report& report) {
  run_case(report, "memory goes there and back", [](Json& figures) {
    const auto numbers = test::random_floats(1000003, 1);
    const Tensor there = random_on(Device::cuda, {1000003}, 1);
    figures["memory_gb"] = static_cast<double>(memory_capacity(Device::cuda)) / 1e9;
    return values_of(there.clone()) == numbers ? "" : "other numbers came back";
  });
  run_case(report, "a kernel adds", [](Json&) {
    const auto a = test::random_floats(100000, 2), b = test::random_floats(100000, 3);
    const Tensor x = random_on(Device::cuda, {100000}, 2), y = random_on(Device::cuda, {100000}, 3);
    ops::add(Device::cuda, x.data(), y.data(), x.data(), x.size());
    const auto sums = values_of(x);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i] != a[i] + b[i]) return "element " + std::to_string(i) + " is another";
    }
    return std::string();
  });
  run_case(report, "the library multiplies", [](Json& figures) {
    const std::int64_t m = 33, k = 64, n = 48;
    const auto x = test::random_floats(m * k, 4), w = test::random_floats(k * n, 5);
    const Tensor dx = random_on(Device::cuda, {m, k}, 4), dw = random_on(Device::cuda, {k, n}, 5);
    const Tensor y = Tensor::empty({m, n}, Purpose::activations, Device::cuda);
    ops::LinearForward args{
        .rows = m, .in = k, .out = n, .x = dx.data(), .x_stride = k, .weight = dw.data(), .y = y.data(), .y_stride = n};
    ops::linear(Device::cuda, args);
    const auto got = values_of(y);
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t c = 0; c < k; ++c) {
          sum += static_cast<double>(x[static_cast<std::size_t>(i * k + c)]) * w[static_cast<std::size_t>(c * n + j)];
        }
        test::keep_worst(worst, std::abs(sum - got[static_cast<std::size_t>(i * n + j)]));
      }
    }
    figures["worst"] = worst;
    return worst < 1e-5 ? "" : "the product is off";  // 64 products of numbers below 1 in fp32
  });
}

}  // namespace etc::gpu_check

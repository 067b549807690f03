#include "etc_core/ops/layer_norm.h"

#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/reference/dense.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

const std::vector<std::int64_t> kOffsets = {0, 30, 130};
const std::vector<std::uint64_t> kOrdinals = {5, 17};

ops::HiddenDropout dropout(float rate) {
  return {.rate = rate,
          .seed = 9,
          .site = DropoutSite::long_feed_forward,
          .examples = 2,
          .offsets = kOffsets.data(),
          .sample_ordinals = kOrdinals.data()};
}

struct Result {
  std::vector<float> y, mean, rstd;
};

Result forward(std::int64_t rows, std::int64_t cols, const std::vector<float>& x, const std::vector<float>& gamma,
               const std::vector<float>& beta, const ops::NormStatistics& statistics = {}) {
  Guarded y(rows * cols), mean(rows), rstd(rows);
  ops::LayerNormForward a{.rows = rows,
                          .cols = cols,
                          .x = x.data(),
                          .gamma = gamma.data(),
                          .beta = beta.data(),
                          .y = y.data(),
                          .mean = mean.data(),
                          .rstd = rstd.data(),
                          .statistics = statistics};
  ops::layer_norm(Device::cpu, a);
  REQUIRE(y.guards_intact());
  REQUIRE(mean.guards_intact());
  REQUIRE(rstd.guards_intact());
  return {y.values(), mean.values(), rstd.values()};
}

}  // namespace

TEST_CASE("layer normalisation equals the formula in double", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t cols : {2, 7, 24, 768}) {
    const std::int64_t rows = 65;
    CAPTURE(cols);
    const auto x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2), beta = random_floats(cols, 3);
    const auto y = reference_layer_norm(to_double(x), to_double(gamma), to_double(beta), rows, cols);
    // A row of two nearly equal numbers loses digits in x − mean: the rounding error is 6e-8 and the spread 1e-2.
    REQUIRE(near_all("y", forward(rows, cols, x, gamma, beta).y, y, cols == 2 ? 1e-4 : 3e-6));
  }
}

TEST_CASE("a norm by the root mean square, or with another epsilon, equals its formula in double", "[core][ops]") {
  ops::register_cpu_ops();
  for (const bool centred : {true, false}) {
    for (const std::int64_t cols : {1, 7, 24, 768}) {
      CAPTURE(centred, cols);
      const std::int64_t rows = 9;
      auto x = random_floats(rows * cols, 1);
      for (float& v : x) v = 0.3f * v + 0.2f;  // a mean that centring would remove, and a noticeable epsilon
      const auto gamma = random_floats(cols, 2), beta = random_floats(cols, 3);
      const auto y = reference_layer_norm(to_double(x), to_double(gamma), to_double(beta), rows, cols, {1e-2, centred});
      REQUIRE(near_all("y", forward(rows, cols, x, gamma, beta, {1e-2f, centred}).y, y, 3e-6));
    }
  }
}

TEST_CASE("the variance survives a mean a thousand times larger", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t cols = 768;
  auto x = random_floats(cols, 1);
  for (float& v : x) v = std::round(v * 1024) / 1024 + 1000;  // exact in fp32, so the input has no rounding error
  const std::vector<float> gamma(768, 1.0f), beta(768, 0.0f);
  const auto y = reference_layer_norm(to_double(x), to_double(gamma), to_double(beta), 1, cols);
  // The mean is rounded to 1000·2^-24 = 6e-5 at worst, the spread is 0.58: 1e-4. E[x²]−E[x]² would be off by 10 %.
  REQUIRE(near_all("y", forward(1, cols, x, gamma, beta).y, y, 2e-4));
}

TEST_CASE("a constant row normalises to beta", "[core][ops]") {
  ops::register_cpu_ops();
  const auto one = forward(1, 1, {3.0f}, {2.0f}, {0.5f});
  REQUIRE(one.y[0] == 0.5f);
  const auto four = forward(1, 4, {0.25f, 0.25f, 0.25f, 0.25f}, {2, 2, 2, 2}, {0, 1, 2, 3});
  REQUIRE(four.y == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("central differences confirm the gradients of layer normalisation", "[core][ops]") {
  ops::register_cpu_ops();
  const std::vector<std::pair<std::int64_t, bool>> cases = {{3, true}, {7, true}, {17, true}, {3, false}, {17, false}};
  for (const auto& [cols, centred] : cases) {
    const std::int64_t rows = 3, cols_of_case = cols;
    const ReferenceNorm norm{1e-3, centred};
    CAPTURE(cols, centred);
    const auto x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2), beta = random_floats(cols, 3);
    const auto dy = random_floats(rows * cols, 4);
    const auto loss = [&](const Reals& x_, const Reals& gamma_, const Reals& beta_) {
      const Reals y = reference_layer_norm(x_, gamma_, beta_, rows, cols_of_case, norm);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(dy[i]);
      return sum;
    };
    const auto saved = forward(rows, cols, x, gamma, beta, {1e-3f, centred});
    const auto dx_before = random_floats(rows * cols, 5);
    Guarded dx(dx_before), dgamma(cols, 1.0f), dbeta(cols, -1.0f);
    ops::LayerNormBackward a{.rows = rows,
                             .cols = cols,
                             .dy = dy.data(),
                             .sum = x.data(),
                             .mean = saved.mean.data(),
                             .rstd = saved.rstd.data(),
                             .gamma = gamma.data(),
                             .dx = dx.data(),
                             .add_to_dx = true,
                             .dgamma = dgamma.data(),
                             .dbeta = dbeta.data(),
                             .centred = centred};
    ops::layer_norm_backward(Device::cpu, a);
    const Reals x64 = to_double(x), gamma64 = to_double(gamma), beta64 = to_double(beta);
    Reals dx64 = central_differences([&](const Reals& v) { return loss(v, gamma64, beta64); }, x64);
    Reals dgamma64 = central_differences([&](const Reals& v) { return loss(x64, v, beta64); }, gamma64);
    Reals dbeta64 = central_differences([&](const Reals& v) { return loss(x64, gamma64, v); }, beta64);
    for (std::size_t i = 0; i < dx64.size(); ++i) dx64[i] += static_cast<double>(dx_before[i]);
    for (double& v : dgamma64) v += 1;
    for (double& v : dbeta64) v -= 1;
    // fp32 sums of rows whose rstd may reach 10.
    REQUIRE(near_all("dx", dx.values(), dx64, 1e-5, 1e-5));
    REQUIRE(near_all("dgamma", dgamma.values(), dgamma64, 2e-6));
    REQUIRE(near_all("dbeta", dbeta.values(), dbeta64, 2e-6));
    REQUIRE(dx.guards_intact());
    REQUIRE(dgamma.guards_intact());
    REQUIRE(dbeta.guards_intact());
  }
}

TEST_CASE("normalisation fused with the residual sum equals the composed operators, both ways", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 130, cols = 50;
  for (const float rate : {0.0f, 0.2f}) {
    CAPTURE(rate);
    const auto x = random_floats(rows * cols, 1), branch = random_floats(rows * cols, 2);
    const auto gamma = random_floats(cols, 3), beta = random_floats(cols, 4), dy = random_floats(rows * cols, 5);
    // Composed.
    std::vector<float> s(x.size());
    ops::DropoutAdd add{
        .rows = rows, .cols = cols, .a = branch.data(), .base = x.data(), .y = s.data(), .dropout = dropout(rate)};
    ops::dropout_add(Device::cpu, add);
    const auto composed = forward(rows, cols, s, gamma, beta);
    // Fused, with the sum kept and not kept, over its own input.
    ops::LayerNormForward a;
    Guarded y(rows * cols), sum(rows * cols), mean(rows), rstd(rows);
    a.rows = rows;
    a.cols = cols;
    a.x = x.data();
    a.branch = branch.data();
    a.dropout = dropout(rate);
    a.gamma = gamma.data();
    a.beta = beta.data();
    a.y = y.data();
    a.sum = sum.data();
    a.mean = mean.data();
    a.rstd = rstd.data();
    ops::layer_norm(Device::cpu, a);
    REQUIRE(same_bits(y.values(), composed.y));
    REQUIRE(same_bits(sum.values(), s));
    REQUIRE(same_bits(mean.values(), composed.mean));
    REQUIRE(same_bits(rstd.values(), composed.rstd));
    REQUIRE((y.guards_intact() && sum.guards_intact() && mean.guards_intact() && rstd.guards_intact()));
    auto in_place = branch;
    a.branch = in_place.data();
    a.y = in_place.data();
    a.sum = nullptr;
    a.mean = nullptr;
    a.rstd = nullptr;
    ops::layer_norm(Device::cpu, a);
    REQUIRE(same_bits(in_place, composed.y));

    // Backward: dx is the plain gradient, dbranch is that under the same mask; both may overwrite dy.
    ops::LayerNormBackward b;
    std::vector<float> dx(x.size()), dbranch = dy;
    b.rows = rows;
    b.cols = cols;
    b.dy = dy.data();
    b.sum = s.data();
    b.mean = composed.mean.data();
    b.rstd = composed.rstd.data();
    b.gamma = gamma.data();
    b.dx = dx.data();
    ops::layer_norm_backward(Device::cpu, b);
    std::vector<float> expected(x.size());
    add.a = dx.data();
    add.base = nullptr;
    add.y = expected.data();
    ops::dropout_add(Device::cpu, add);
    std::vector<float> dx_again(x.size());
    b.dy = dbranch.data();
    b.dx = dx_again.data();
    b.dbranch = dbranch.data();
    b.dropout = dropout(rate);
    ops::layer_norm_backward(Device::cpu, b);
    REQUIRE(same_bits(dx_again, dx));
    REQUIRE(same_bits(dbranch, expected));
  }
}

TEST_CASE("a row's normalisation does not depend on its neighbours, nor anything on threads", "[core][ops]") {
  ops::register_cpu_ops();
  const std::int64_t rows = 200, cols = 72;
  const auto x = random_floats(rows * cols, 1), gamma = random_floats(cols, 2), beta = random_floats(cols, 3);
  const auto dy = random_floats(rows * cols, 4);
  const auto all = forward(rows, cols, x, gamma, beta);
  const std::vector<float> row(x.begin() + 77 * cols, x.begin() + 78 * cols);
  REQUIRE(same_bits(forward(1, cols, row, gamma, beta).y, {all.y.begin() + 77 * cols, all.y.begin() + 78 * cols}));
  REQUIRE(same_bits_for_any_thread_count([&] {
    std::vector<float> out(static_cast<std::size_t>(rows * cols + 2 * cols));
    ops::LayerNormBackward a{.rows = rows,
                             .cols = cols,
                             .dy = dy.data(),
                             .sum = x.data(),
                             .mean = all.mean.data(),
                             .rstd = all.rstd.data(),
                             .gamma = gamma.data(),
                             .dx = out.data(),
                             .dgamma = out.data() + rows * cols};
    a.dbeta = a.dgamma + cols;
    ops::layer_norm_backward(Device::cpu, a);
    return out;
  }));
}

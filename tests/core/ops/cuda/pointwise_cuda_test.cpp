// The point-wise CUDA kernels on the emulator against the CPU's, which are tested against references themselves.
#include <cmath>

#include "etc_core/ops/activation.h"
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/ops/cuda/register_cuda.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/position_bias.h"
#include "etc_core/ops/register.h"
#include "etc_core/ops/scaled_sum.h"
#include "etc_core/ops/vocabulary_softmax.h"
#include "tests/core/ops/cuda/both_backends.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/simt/emulator.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

// Results of `run` on both devices.
template <typename Run>
auto on_both(const Run& run) {
  ops::register_cpu_ops();
  ops::register_cuda_ops();
  const std::int64_t before = simt::emulator_counts().launches;
  const auto cuda = run(Device::cuda);
  REQUIRE(simt::emulator_counts().launches > before);
  return std::pair(run(Device::cpu), cuda);
}

const std::vector<std::int64_t> kOffsets = {0, 5, 5, 70};
const std::vector<std::uint64_t> kOrdinals = {7, 1000, 123456789012ull};

ops::HiddenDropout dropout(float rate) {
  return {.rate = rate,
          .seed = 42,
          .layer = 3,
          .site = DropoutSite::global_feed_forward,
          .examples = 3,
          .offsets = kOffsets.data(),
          .sample_ordinals = kOrdinals.data()};
}

}  // namespace

TEST_CASE("emulated element-wise kernels have the CPU's bits", "[ops][cuda]") {
  for (const std::int64_t size : {1, 255, 256, 257, 1000}) {
    const auto a = random_floats(size, 1), b = random_floats(size, 2);
    const auto [cpu, cuda] = on_both([&](Device device) {
      Guarded sum(size), scaled(a), moved(a);
      ops::add(device, a.data(), b.data(), sum.data(), size);
      ops::scale(device, 0.3f, scaled.data(), size);
      ops::axpy(device, -1.7f, b.data(), moved.data(), size);
      CHECK(sum.guards_intact());
      CHECK(scaled.guards_intact());
      CHECK(moved.guards_intact());
      auto all = sum.values();
      for (const auto& more : {scaled.values(), moved.values()}) all.insert(all.end(), more.begin(), more.end());
      return all;
    });
    CHECK(same_bits(cpu, cuda));
  }
}

TEST_CASE("emulated activations and their slopes equal the CPU's", "[ops][cuda]") {
  auto x = random_floats(700, 4, 6.0f);
  x[0] = 0.0f;
  x[1] = NAN;
  x[2] = 30.0f;
  x[3] = -30.0f;
  const auto dy = random_floats(700, 5);
  for (auto activation : {ops::Activation::linear, ops::Activation::relu, ops::Activation::tanh, ops::Activation::gelu,
                          ops::Activation::gelu_erf}) {
    CAPTURE(ops::activation_name(activation));
    const auto [cpu, cuda] = on_both([&](Device device) {
      Guarded y(700), dx(dy);
      ops::activation_forward(device, activation, x.data(), y.data(), 700);
      ops::activation_backward(device, activation, x.data(), dx.data(), dx.data(), 700);  // in place
      CHECK(y.guards_intact());
      CHECK(dx.guards_intact());
      return std::pair(y.values(), dx.values());
    });
    // tanh is accurate to a few ulp on both backends; x·tanh with x up to 6 magnifies the error.
    CHECK(near_all("y", cuda.first, doubles(cpu.first), 2e-6, 1e-6));
    CHECK(near_all("dx", cuda.second, doubles(cpu.second), 2e-6, 1e-6));
  }
}

TEST_CASE("emulated biases of positions and their gradients equal the CPU's", "[ops][cuda]") {
  constexpr std::int64_t kRows = 150, kHeads = 2, kSize = 65;
  constexpr std::int64_t kWidth = kHeads * kSize;
  const auto rel = random_floats(kRows * kWidth, 1), u = random_floats(kWidth, 2), v = random_floats(kWidth, 3);
  const auto dy = random_floats(kRows * kHeads, 4);
  for (const bool both : {false, true}) {
    const float* const content = both ? u.data() : nullptr;
    const auto [cpu, cuda] = on_both([&](Device device) {
      Guarded y(kRows * kHeads), drel(rel), dcontent(u), dposition(v);
      ops::position_bias(device, {kRows, kHeads, kSize, rel.data(), content, v.data(), y.data()});
      ops::position_bias_backward(device, {kRows, kHeads, kSize, rel.data(), content, v.data(), dy.data(), drel.data(),
                                           both ? dcontent.data() : nullptr, dposition.data()});
      std::vector<float> all;
      for (const Guarded* part : {&y, &drel, &dcontent, &dposition}) {
        CHECK(part->guards_intact());
        const auto values = part->values();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    });
    CHECK(near_all("biases", cuda, doubles(cpu), 1e-5, 1e-5));
  }
}

TEST_CASE("emulated dropout draws the CPU's bits", "[ops][cuda]") {
  for (const std::int64_t cols : {1, 6, 67, 200}) {
    for (const float rate : {0.0f, 0.4f}) {
      const auto a = random_floats(70 * cols, 6), base = random_floats(70 * cols, 7);
      const auto [cpu, cuda] = on_both([&](Device device) {
        Guarded alone(70 * cols), sum(base);
        ops::dropout_add(device, {70, cols, a.data(), nullptr, alone.data(), dropout(rate)});
        ops::dropout_add(device, {70, cols, a.data(), sum.data(), sum.data(), dropout(rate)});
        CHECK(alone.guards_intact());
        CHECK(sum.guards_intact());
        auto all = alone.values();
        const auto more = sum.values();
        all.insert(all.end(), more.begin(), more.end());
        return all;
      });
      CHECK(same_bits(cpu, cuda));
    }
  }
}

TEST_CASE("emulated scaled sums have the CPU's bits but for the order of alpha's sum", "[ops][cuda]") {
  for (const std::int64_t size : {1, 257, 16384, 40000}) {
    const auto x = random_floats(size, 1), branch = random_floats(size, 2), dy = random_floats(size, 3);
    const float alpha = -0.7f;
    const auto [cpu, cuda] = on_both([&](Device device) {
      Guarded y(size), dbranch(dy), dalpha(std::vector<float>{0.5f});
      ops::scaled_sum(device, {size, x.data(), branch.data(), &alpha, y.data()});
      ops::scaled_sum_backward(device, {size, dbranch.data(), branch.data(), &alpha, dbranch.data(), dalpha.data()});
      ops::scaled_sum_backward(device, {size, dy.data(), branch.data(), &alpha, nullptr, dalpha.data()});
      for (const Guarded* one : {&y, &dbranch, &dalpha}) CHECK(one->guards_intact());
      return std::vector{y.values(), dbranch.values(), dalpha.values()};
    });
    CHECK(same_bits(cpu[0], cuda[0]));
    CHECK(same_bits(cpu[1], cuda[1]));
    CHECK(near_all("dalpha", cuda[2], doubles(cpu[2]), 0, 0x1p-22));  // sums in double, rounded to fp32 twice
  }
}

TEST_CASE("emulated sums with a number for each column have the CPU's bits but for the order of their sums",
          "[ops][cuda]") {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>(1, 3), {300, 70}}) {
    const std::int64_t size = rows * cols, columns = cols;
    const auto x = random_floats(size, 1), branch = random_floats(size, 2), dy = random_floats(size, 3),
               alpha = random_floats(cols, 4);
    const auto [cpu, cuda] = on_both([&](Device device) {
      Guarded y(size), dbranch(dy), dalpha(random_floats(columns, 5));
      ops::scaled_sum(device, {size, x.data(), branch.data(), alpha.data(), y.data(), columns});
      ops::scaled_sum_backward(
          device, {size, dbranch.data(), branch.data(), alpha.data(), dbranch.data(), dalpha.data(), columns});
      for (const Guarded* one : {&y, &dbranch, &dalpha}) CHECK(one->guards_intact());
      return std::vector{y.values(), dbranch.values(), dalpha.values()};
    });
    CHECK(same_bits(cpu[0], cuda[0]));
    CHECK(same_bits(cpu[1], cuda[1]));
    CHECK(near_all("dalpha", cuda[2], doubles(cpu[2]), 1e-6, 0x1p-22));
  }
}

TEST_CASE("emulated layer normalisation equals the CPU's, forward and backward", "[ops][cuda]") {
  constexpr std::int64_t kRows = 70;  // two blocks of rows in the tables' sums
  for (const std::int64_t cols : {1, 7, 24, 128, 300}) {
    for (const bool with_branch : {false, true}) {
      CAPTURE(cols, with_branch);
      const auto x = random_floats(kRows * cols, 1), branch = random_floats(kRows * cols, 2);
      const auto gamma = random_floats(cols, 3), beta = random_floats(cols, 4), dy = random_floats(kRows * cols, 5);
      const ops::NormStatistics statistics =  // without branch the other kind, if rows are long enough
          with_branch || cols < 24 ? ops::NormStatistics() : ops::NormStatistics{1e-2f, false};
      const auto [cpu, cuda] = on_both([&](Device device) {
        Guarded y(kRows * cols), sum(kRows * cols), mean(kRows), rstd(kRows);
        ops::LayerNormForward f{.rows = kRows,
                                .cols = cols,
                                .x = x.data(),
                                .branch = with_branch ? branch.data() : nullptr,
                                .dropout = dropout(with_branch ? 0.2f : 0.0f),
                                .gamma = gamma.data(),
                                .beta = beta.data(),
                                .y = y.data(),
                                .sum = with_branch ? sum.data() : nullptr,
                                .mean = mean.data(),
                                .rstd = rstd.data(),
                                .statistics = statistics};
        ops::layer_norm(device, f);
        Guarded dx(kRows * cols, 0.5f), dbranch(dy), dgamma(cols, 1.0f), dbeta(cols, -1.0f);
        ops::LayerNormBackward b{.rows = kRows, .cols = cols};
        b.dy = with_branch ? dbranch.data() : dy.data();  // dbranch in place over dy
        b.sum = with_branch ? sum.data() : x.data();
        b.mean = mean.data();
        b.rstd = rstd.data();
        b.gamma = gamma.data();
        b.dx = dx.data();
        b.add_to_dx = true;
        b.dbranch = with_branch ? dbranch.data() : nullptr;
        b.dropout = f.dropout;
        b.dgamma = dgamma.data();
        b.dbeta = dbeta.data();
        b.centred = statistics.centred;
        ops::layer_norm_backward(device, b);
        std::vector<std::vector<float>> results;
        for (const Guarded* one : {&y, &mean, &rstd, &dx, &dbranch, &dgamma, &dbeta}) {
          CHECK(one->guards_intact());
          results.push_back(one->values());
        }
        return results;
      });
      for (std::size_t i = 0; i < cpu.size(); ++i) {
        CAPTURE(i);
        // Sums of up to 300 numbers in another order. A row of one number has rstd = 1e6, which magnifies differences
        // as much.
        const double absolute = cols == 1 ? 1e-1 : cols == 7 ? 5e-5 : 1e-5;
        CHECK(near_all("layer norm", cuda[i], doubles(cpu[i]), absolute, 1e-5));
      }
    }
  }
}

TEST_CASE("emulated cross-entropy equals the CPU's", "[ops][cuda]") {
  const std::vector<std::int64_t> offsets = {0, 3, 3, 10, 210, 215};
  const std::int64_t size = offsets.back(), stride = 2;
  const auto logits = random_floats(size * stride, 1, 8.0f);
  auto target = random_floats(size, 2);
  for (float& t : target) t = std::fabs(t);
  std::vector<std::uint8_t> counted(static_cast<std::size_t>(size), 1);
  counted[1] = counted[20] = 0;
  for (std::size_t i = 210; i < 215; ++i) counted[i] = 0;  // a group without counted logits
  const std::vector<std::int32_t> index = {2, -1, 0, 150, -1};
  for (const bool distribution : {false, true}) {
    for (const float smoothing : {0.0f, 0.1f}) {
      if (distribution && smoothing > 0) continue;
      const auto run = [&](Device device) {
        std::vector<double> losses(5, 99.0);
        Guarded dlogits(size * stride);
        ops::CrossEntropy a{.groups = 5,
                            .offsets = offsets.data(),
                            .logits = logits.data(),
                            .stride = stride,
                            .counted = counted.data(),
                            .target_index = distribution ? nullptr : index.data(),
                            .target = distribution ? target.data() : nullptr,
                            .label_smoothing = smoothing,
                            .scale = 0.25,
                            .losses = losses.data(),
                            .dlogits = dlogits.data()};
        if (distribution) {
          for (std::size_t i = 210; i < 215; ++i) target[i] = 0.0f;
        }
        ops::cross_entropy(device, a);
        CHECK(dlogits.guards_intact());
        return std::pair(losses, dlogits.values());
      };
      const auto [cpu, cuda] = on_both(run);
      for (std::size_t k = 0; k < 5; ++k) CHECK(cuda.first[k] == Approx(cpu.first[k]).epsilon(1e-12).margin(1e-12));
      CHECK(near_all("dlogits", cuda.second, doubles(cpu.second), 1e-7, 1e-6));
    }
  }
  ops::CrossEntropy bad;
  bad.groups = 1;
  const std::int64_t two[] = {0, 2};
  const std::int32_t outside[] = {2};
  double loss = 0;
  bad.offsets = two;
  bad.logits = logits.data();
  bad.target_index = outside;
  bad.losses = &loss;
  CHECK_THROWS_WITH(ops::cross_entropy(Device::cuda, bad),
                    Contains("group 0: target index: expected -1 (none) or 0 to 1"));
}

TEST_CASE("the emulated softmax of a vocabulary equals the CPU's, and its best entries are the same", "[ops][cuda]") {
  for (const std::int64_t vocabulary : {1, 5, 256, 700}) {
    CAPTURE(vocabulary);
    auto logits = random_floats(6 * vocabulary, 8, 20.0f);
    for (std::int64_t v = 0; v < vocabulary; ++v) logits[static_cast<std::size_t>(v)] = 1.5f;  // all equal: the first
    if (vocabulary > 300) logits[static_cast<std::size_t>(2 * vocabulary + 299)] = logits[2 * 700 + 30] = 50.0f;
    const auto labels = random_ids(6, static_cast<std::int32_t>(vocabulary), 9);
    struct Result {
      std::vector<double> losses = std::vector<double>(6), best_log_p = losses, smoothed = losses;
      std::vector<std::int32_t> best = std::vector<std::int32_t>(6);
      std::vector<float> dz;
    };
    const auto [cpu, cuda] = on_both([&](Device device) {
      Result result;
      Guarded z(logits);
      ops::vocabulary_softmax(device, {.rows = 6,
                                       .vocabulary = vocabulary,
                                       .z = z.data(),
                                       .labels = labels.data(),
                                       .gradient = true,
                                       .scale = 0.5,
                                       .losses = result.losses.data(),
                                       .best = result.best.data(),
                                       .best_log_p = result.best_log_p.data(),
                                       .smoothing = vocabulary > 1 ? 0.1 : 0.0,
                                       .smoothed = result.smoothed.data()});
      CHECK(z.guards_intact());
      result.dz = z.values();
      return result;
    });
    CHECK(cuda.best == cpu.best);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(cuda.losses[i] == Approx(cpu.losses[i]).epsilon(1e-6).margin(1e-6));
      CHECK(cuda.smoothed[i] == Approx(cpu.smoothed[i]).epsilon(1e-6).margin(1e-6));
      CHECK(cuda.best_log_p[i] == Approx(cpu.best_log_p[i]).epsilon(1e-6).margin(1e-6));
    }
    CHECK(near_all("dz", cuda.dz, doubles(cpu.dz), 1e-7, 2e-6));
  }
}

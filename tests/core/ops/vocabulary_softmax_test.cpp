#include "etc_core/ops/vocabulary_softmax.h"

#include <algorithm>
#include <cmath>

#include "etc_core/ops/register.h"
#include "tests/golden/golden_group.h"
#include "tests/reference/vocabulary.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

using namespace etc;
using namespace etc::test;

namespace {

struct Run {
  std::vector<double> losses, best_log_p;
  std::vector<std::int32_t> best;
  std::vector<float> z;
};

Run run(const std::vector<float>& logits, const std::vector<std::int32_t>& labels, bool gradient, double scale = 1) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  Run result;
  result.losses.assign(labels.size(), -1);
  result.best_log_p.assign(labels.size(), 1);
  result.best.assign(labels.size(), -1);
  Guarded z(logits);
  ops::vocabulary_softmax(Device::cpu, {.rows = rows,
                                        .vocabulary = static_cast<std::int64_t>(logits.size()) / rows,
                                        .z = z.data(),
                                        .labels = labels.data(),
                                        .gradient = gradient,
                                        .scale = scale,
                                        .losses = result.losses.data(),
                                        .best = result.best.data(),
                                        .best_log_p = result.best_log_p.data()});
  REQUIRE(z.guards_intact());
  result.z = z.values();
  return result;
}

}  // namespace

TEST_CASE("the softmax of a vocabulary gives the worked numbers of the specification", "[core][ops]") {
  ops::register_cpu_ops();
  const auto result = run({2, 1, 0, -1, 0.5f, 0.5f, 1.5f, 0, 3, 0, 0, 0}, {0, 1, 2}, false);
  CHECK(result.losses[0] == Approx(0.440190).margin(1e-6));
  CHECK(result.losses[1] == Approx(1.672377).margin(1e-6));
  CHECK(result.losses[2] == Approx(3.139206).margin(1e-6));
  CHECK(result.best == std::vector<std::int32_t>{0, 2, 0});
  // The loss over the first two labels, with the objective's denominator.
  CHECK((result.losses[0] + result.losses[1]) / (2 + 1e-5) == Approx(1.056278).margin(1e-6));
}

TEST_CASE("the softmax of a vocabulary has losses, best entries and gradients of the formula", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::int64_t count : {1, 2, 7, 16, 17, 1024, 1025, 30522}) {
    for (const float magnitude : {1.0f, 88.0f}) {
      CAPTURE(count, magnitude);
      const std::int64_t rows = count > 2000 ? 3 : 5;
      const auto logits = random_floats(rows * count, static_cast<std::uint64_t>(count), magnitude);
      const auto labels = random_ids(rows, static_cast<std::int32_t>(count), 3);
      const Run result = run(logits, labels, true, 0.25);
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const float* row = logits.data() + i * count;
        const auto e = reference_vocabulary_row(row, count, labels[at], 0.25);
        CHECK(result.losses[at] == Approx(e.loss).epsilon(1e-6).margin(1e-6));
        CHECK(result.best_log_p[at] == Approx(e.best_log_p).epsilon(1e-6).margin(1e-6));
        CHECK(result.best[at] == e.best);
        CHECK(
            near_all("dz", {result.z.begin() + i * count, result.z.begin() + (i + 1) * count}, e.gradient, 1e-7, 2e-6));
      }
    }
  }
}

TEST_CASE("of equal logits the first entry of a vocabulary is the best", "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<float> logits(200, -3.0f);
  logits[37] = logits[90] = logits[199] = 5.0f;
  CHECK(run(logits, {0}, false).best[0] == 37);
  CHECK(run(std::vector<float>(50, 0.0f), {4}, false).best[0] == 0);
}

TEST_CASE("a nan among the logits of a vocabulary makes the loss nan", "[core][ops]") {
  ops::register_cpu_ops();
  for (const std::size_t place : {0, 5, 40}) {
    std::vector<float> logits = random_floats(41, 1);
    logits[place] = NAN;
    CHECK(std::isnan(run(logits, {7}, true).losses[0]));
  }
}

TEST_CASE("the softmax of a vocabulary has the same bits for any thread count and any neighbours", "[core][ops]") {
  ops::register_cpu_ops();
  const auto logits = random_floats(9 * 777, 2, 4.0f);
  const auto labels = random_ids(9, 777, 4);
  CHECK(same_bits_for_any_thread_count([&] { return run(logits, labels, true).z; }));
  const Run all = run(logits, labels, true);
  const Run alone = run({logits.begin() + 4 * 777, logits.begin() + 5 * 777}, {labels[4]}, true);
  CHECK(same_bits(alone.z, {all.z.begin() + 4 * 777, all.z.begin() + 5 * 777}));
  CHECK(alone.losses[0] == all.losses[4]);
}

TEST_CASE("labels outside the vocabulary and missing arrays are refused", "[core][ops]") {
  ops::register_cpu_ops();
  CHECK_THROWS_WITH(run({1, 2, 3, 4}, {0, 2}, false), "vocabulary_softmax: row 1: label: expected 0 to 1, got 2");
  CHECK_THROWS_WITH(run({1, 2, 3, 4}, {-1, 0}, false), "vocabulary_softmax: row 0: label: expected 0 to 1, got -1");
  ops::VocabularySoftmax missing{.rows = 1, .vocabulary = 2};
  CHECK_THROWS_WITH(ops::vocabulary_softmax(Device::cpu, missing), "vocabulary_softmax: z is missing (null)");
  missing.vocabulary = 0;
  CHECK_THROWS_WITH(ops::vocabulary_softmax(Device::cpu, missing),
                    "vocabulary_softmax: sizes: expected M >= 0 and V >= 1, got M=1, V=0");
}

TEST_CASE("label smoothing has the losses and gradients of the formulas", "[ops][golden]") {
  ops::register_cpu_ops();
  for_each_file_with("label_smoothing/uniform_all", [](const GoldenFile& file) {
    const auto all = file.read<float>("label_smoothing/logits");
    const auto targets = file.read<std::int32_t>("label_smoothing/targets").values;
    const std::int32_t pad = file.read<std::int32_t>("label_smoothing/pad").values.at(0);
    const std::int64_t vocabulary = all.shape.at(1);
    std::vector<float> logits;  // a ragged batch has no padding
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == pad) continue;
      const auto row = all.values.begin() + static_cast<std::ptrdiff_t>(i) * vocabulary;
      logits.insert(logits.end(), row, row + vocabulary);
      labels.push_back(targets[i]);
      kept.push_back(static_cast<std::int64_t>(i));
    }
    CHECK(std::ssize(labels) == file.read<std::int64_t>("label_smoothing/ntokens").values.at(0));
    int cases = 0;
    for (const std::string& name : file.groups("label_smoothing/uniform_all")) {
      CAPTURE(name);
      const std::string group = "label_smoothing/uniform_all/" + name;
      std::vector<double> losses(labels.size()), smoothed(labels.size());
      std::vector<float> z = logits;
      ops::vocabulary_softmax(Device::cpu, {.rows = std::ssize(labels),
                                            .vocabulary = vocabulary,
                                            .z = z.data(),
                                            .labels = labels.data(),
                                            .gradient = true,
                                            .losses = losses.data(),
                                            .smoothing = std::stod(name.substr(3)),
                                            .smoothed = smoothed.data()});
      double nll = 0, loss = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        nll += losses[i];
        loss += smoothed[i];
      }
      CHECK(nll == Approx(file.read<double>("label_smoothing/nll_sum").values.at(0)).epsilon(2e-6));
      const double expected = file.read<double>(group + "/loss_sum").values.at(0);
      CHECK(loss == Approx(expected).epsilon(2e-6));
      CHECK(loss != Approx(expected * 1.001).epsilon(2e-6));
      const auto gradient = file.read<double>(group + "/grad_logits").values;
      std::vector<double> of_kept;
      for (const std::int64_t row : kept) {
        of_kept.insert(of_kept.end(), gradient.begin() + row * vocabulary, gradient.begin() + (row + 1) * vocabulary);
      }
      CHECK(near_all("dz", z, of_kept, 1e-6, 2e-5));
      for (std::size_t i = 0; i < targets.size(); ++i) {  // padding has no gradient
        const auto row = gradient.begin() + static_cast<std::ptrdiff_t>(i) * vocabulary;
        if (targets[i] == pad) CHECK(std::all_of(row, row + vocabulary, [](double g) { return g == 0; }));
      }
      of_kept[7] += 1e-3;
      CHECK_FALSE(near_all("dz", z, of_kept, 1e-6, 2e-5));
      for (std::size_t i = 0; i < labels.size(); ++i) {  // the gradient of a row sums to 0
        double sum = 0;
        for (std::int64_t v = 0; v < vocabulary; ++v)
          sum += z[i * static_cast<std::size_t>(vocabulary) + static_cast<std::size_t>(v)];
        CHECK(std::abs(sum) < 1e-6);
      }
      ++cases;
    }
    CHECK(cases > 0);
  });
}

TEST_CASE("the other published smoothing, which trains nothing here, is known by its numbers", "[ops][golden]") {
  ops::register_cpu_ops();
  const std::string all = "label_smoothing/excluding_target_and_pad_kl";
  for_each_file_with(all, [&](const GoldenFile& file) {
    const auto logits = file.read<float>("label_smoothing/logits");
    const auto targets = file.read<std::int32_t>("label_smoothing/targets").values;
    const std::int32_t pad = file.read<std::int32_t>("label_smoothing/pad").values.at(0);
    const std::int64_t vocabulary = logits.shape.at(1);
    std::vector<float> p = logits.values;
    std::vector<double> losses(targets.size());
    ops::vocabulary_softmax(Device::cpu, {.rows = std::ssize(targets),
                                          .vocabulary = vocabulary,
                                          .z = p.data(),
                                          .labels = targets.data(),
                                          .gradient = true,
                                          .losses = losses.data()});
    for (const std::string& name : file.groups(all)) {
      CAPTURE(name);
      // q: 1 - ε of the target, ε/(V-2) of all others except padding; Σ q·(log q - log p), gradient p - q.
      const double epsilon = std::stod(name.substr(3));
      double divergence = 0;
      std::vector<double> gradient;
      for (std::int64_t i = 0; i < std::ssize(targets) * vocabulary; ++i) {
        const std::int32_t target = targets[static_cast<std::size_t>(i / vocabulary)];
        const std::int64_t v = i % vocabulary;
        const double q = v == target ? 1 - epsilon : v == pad ? 0 : epsilon / static_cast<double>(vocabulary - 2);
        const double own = static_cast<double>(p[static_cast<std::size_t>(i)]) + (v == target ? 1 : 0);
        gradient.push_back(target == pad ? 0 : own - q);
        if (target != pad && q > 0) divergence += q * (std::log(q) - std::log(own));
      }
      CHECK(divergence == Approx(file.read<double>(all + "/" + name + "/loss_sum").values.at(0)).epsilon(1e-5));
      const auto expected = file.read<double>(all + "/" + name + "/grad_logits").values;
      REQUIRE(expected.size() == gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == Approx(expected[i]).margin(2e-6));
    }
  });
}

TEST_CASE("label smoothing gives the specification's example, whatever the vocabulary's size, and refuses others",
          "[core][ops]") {
  ops::register_cpu_ops();
  std::vector<float> z{2, 1, 0, -1, 0.5f};
  const std::int32_t label = 0;
  double loss = 0, smoothed = 0;
  ops::VocabularySoftmax args{.rows = 1,
                              .vocabulary = 5,
                              .z = z.data(),
                              .labels = &label,
                              .gradient = true,
                              .losses = &loss,
                              .smoothing = 0.1,
                              .smoothed = &smoothed};
  ops::vocabulary_softmax(Device::cpu, args);
  CHECK(loss == Approx(0.574438).margin(1e-6));
  CHECK(smoothed == Approx(0.724438).margin(1e-6));
  CHECK(near_all("dz", z, {-0.356979, 0.187124, 0.056197, 0.008031, 0.105627}, 1e-6, 0));
  const std::int64_t count = 5000;
  std::vector<float> large = random_floats(count, 3, 4.0f);
  double sum = 0, lse = 0, mean = 0;
  for (const float number : large) {
    sum += std::exp(static_cast<double>(number));
    mean += number / static_cast<double>(count);
  }
  lse = std::log(sum);
  const double expected = 0.9 * (lse - large[0]) + 0.1 * (lse - mean);
  args.vocabulary = count;
  args.z = large.data();
  ops::vocabulary_softmax(Device::cpu, args);
  CHECK(smoothed == Approx(expected).epsilon(1e-6));
  args.smoothing = 1.5;
  CHECK_THROWS_WITH(ops::vocabulary_softmax(Device::cpu, args),
                    "vocabulary_softmax: smoothing: expected 0 to 1, got 1.5");
}

#include "etc_core/optim/schedule.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"

using namespace etc;
using etc::test::GoldenFile;

TEST_CASE("the learning rate is the table of etc-core 10.1, with its jump", "[optim]") {
  const LearningRateSchedule schedule{.initial_rate = 5e-5, .total_steps = 1000, .warmup_steps = 100};
  const std::pair<std::int64_t, double> table[]{{0, 0},         {1, 5e-7},   {99, 4.95e-5}, {100, 4.5e-5},
                                                {550, 2.25e-5}, {999, 5e-8}, {1000, 0},     {5000, 0}};
  for (const auto& [step, rate] : table) {
    CAPTURE(step);
    REQUIRE(learning_rate(schedule, step) == Approx(rate).epsilon(1e-12).margin(1e-21));
  }
}

TEST_CASE("a power bends the decay and a later start shifts the warm-up", "[optim]") {
  const LearningRateSchedule bent{.initial_rate = 1, .total_steps = 100, .power = 0.5};
  REQUIRE(learning_rate(bent, 0) == 1);
  REQUIRE(learning_rate(bent, 75) == Approx(0.5));
  const LearningRateSchedule later{.initial_rate = 1, .total_steps = 100, .warmup_steps = 10, .start_warmup_step = 5};
  REQUIRE(learning_rate(later, 5) == 0);
  REQUIRE(learning_rate(later, 14) == Approx(0.9));
  REQUIRE(learning_rate(later, 15) == Approx(0.85));
}

TEST_CASE("impossible schedules are errors", "[optim]") {
  REQUIRE_THROWS_AS(learning_rate({.initial_rate = 1, .total_steps = 0}, 0), UsageError);
  REQUIRE_THROWS_WITH(learning_rate({.initial_rate = 1, .total_steps = 0}, 0),
                      "schedule: total steps: expected at least 1, got 0");
  REQUIRE_THROWS_AS(learning_rate({.initial_rate = -1, .total_steps = 1}, 0), UsageError);
  REQUIRE_THROWS_AS(learning_rate({.initial_rate = std::nan(""), .total_steps = 1}, 0), UsageError);
  REQUIRE_THROWS_AS(learning_rate({.initial_rate = 1, .warmup_steps = -1}, 0), UsageError);
  REQUIRE_THROWS_AS(learning_rate({.initial_rate = 1, .power = 0}, 0), UsageError);
  REQUIRE_THROWS_WITH(
      learning_rate({.initial_rate = 1, .total_steps = 9, .warmup_steps = 2, .start_warmup_step = 3}, 2),
      "schedule: step 2 lies before the start of the warm-up, 3");
}

TEST_CASE("steps of a run and of its warm-up are rounded down", "[optim]") {
  REQUIRE(total_training_steps(43738, 32, 15) == 20502);  // 43738/32*15 = 20502.1875
  REQUIRE(total_training_steps(10, 32, 1) == 0);
  REQUIRE(warmup_training_steps(20502, 0.1) == 2050);
  REQUIRE_THROWS_AS(total_training_steps(10, 0, 1), UsageError);
}

TEST_CASE("learning rates equal the reference's", "[optim][golden]") {
  const auto paths = test::golden_files_of_kind("schedule");
  if (paths.empty()) return test::skip("no golden file of kind schedule");
  for (const auto& path : paths) {
    const GoldenFile file(path);
    for (const std::string& group : file.groups()) {
      const LearningRateSchedule schedule{.initial_rate = file.real_attribute(group, "init_lr"),
                                          .total_steps = file.int_attribute(group, "num_train_steps"),
                                          .warmup_steps = file.int_attribute(group, "num_warmup_steps"),
                                          .start_warmup_step = file.int_attribute(group, "start_warmup_step"),
                                          .power = file.real_attribute(group, "poly_power")};
      const auto steps = file.read<std::int64_t>(group + "/step").values;
      const auto rates = file.read<float>(group + "/lr").values;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const double rate = learning_rate(schedule, steps[i]);
        CAPTURE(path, group, steps[i], rate, rates[i]);
        // The reference computes in fp32, ε = 2^-24 a rounding: step/total, the subtraction from 1 (together an
        // absolute error of 2ε in the base), the power, which multiplies that by q·base^(q-1), and two products.
        const double base =
            1.0 - std::min(1.0, static_cast<double>(steps[i]) / static_cast<double>(schedule.total_steps));
        const double power = std::max(base, 1e-9);
        const double slope = schedule.power * std::pow(power, schedule.power - 1);
        const double tolerance = 0x1p-24 * schedule.initial_rate * (2 * slope + 4);
        REQUIRE(std::abs(rate - static_cast<double>(rates[i])) <= tolerance);
      }
    }
  }
}

TEST_CASE("rates of BERT's schedule are those of the formulas", "[optim][golden]") {
  test::for_each_file_with("schedules/bert_linear", [](const GoldenFile& file) {
    const std::string name = "schedules/bert_linear";
    const LearningRateSchedule schedule{.initial_rate = file.real_attribute(name, "peak"),
                                        .total_steps = file.int_attribute(name, "total"),
                                        .warmup_steps = file.int_attribute(name, "warmup")};
    const auto steps = file.read<std::int64_t>("schedules/steps").values;
    const auto rates = file.read<double>(name).values;
    REQUIRE(steps.size() == rates.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CAPTURE(steps[i]);
      CHECK(learning_rate(schedule, steps[i]) == Approx(rates[i]).epsilon(1e-10).margin(1e-14));
    }
  });
}

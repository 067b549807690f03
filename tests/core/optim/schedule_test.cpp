#include "etc_core/optim/schedule.h"

#include <cmath>
#include <map>

#include "etc_core/base/error.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/worst.h"

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

TEST_CASE("schedules go by their names", "[optim]") {
  for (const std::string& name : schedule_names()) {
    CHECK(schedule_names()[static_cast<std::size_t>(schedule_kind(name))] == name);
  }
  CHECK(schedule_kind("noam") == ScheduleKind::noam);
  CHECK_THROWS_WITH(schedule_kind("inverse_sqr"),
                    "schedule: expected one of bert, inverse_sqrt, linear, polynomial, noam, got inverse_sqr (did you "
                    "mean inverse_sqrt?)");
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
    REQUIRE_FALSE(file.groups().empty());
    for (const std::string& group : file.groups()) {
      const LearningRateSchedule schedule{.initial_rate = file.real_attribute(group, "init_lr"),
                                          .total_steps = file.int_attribute(group, "num_train_steps"),
                                          .warmup_steps = file.int_attribute(group, "num_warmup_steps"),
                                          .start_warmup_step = file.int_attribute(group, "start_warmup_step"),
                                          .power = file.real_attribute(group, "poly_power")};
      const auto steps = file.read<std::int64_t>(group + "/step").values;
      const auto rates = file.read<float>(group + "/lr").values;
      REQUIRE_FALSE(steps.empty());
      REQUIRE(rates.size() == steps.size());
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
    file.require_all_read();
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

namespace {

// A translation schedule from the attributes of its data set in the group `schedules`.
LearningRateSchedule schedule_of(const GoldenFile& file, const std::string& name) {
  const std::string data_set = "schedules/" + name;
  const auto real = [&](const char* attribute, double other) {
    return file.has_attribute(data_set, attribute) ? file.real_attribute(data_set, attribute) : other;
  };
  const auto integer = [&](const char* attribute, std::int64_t other) {
    return file.has_attribute(data_set, attribute) ? file.int_attribute(data_set, attribute) : other;
  };
  static const std::map<std::string, ScheduleKind> kKinds = {
      {"bert_linear", ScheduleKind::bert},          {"noam", ScheduleKind::noam},
      {"inverse_sqrt", ScheduleKind::inverse_sqrt}, {"linear_translation", ScheduleKind::linear},
      {"polynomial", ScheduleKind::polynomial},     {"polynomial_power2", ScheduleKind::polynomial}};
  LearningRateSchedule schedule{.initial_rate = real("peak", 1),
                                .total_steps = integer("total", 1),
                                .warmup_steps = integer("warmup", 0),
                                .power = real("power", 1),
                                .kind = kKinds.at(name)};
  schedule.start_rate = real("warmup_init", 0);
  schedule.end_rate = real("min_lr", real("end", 0));
  schedule.width = integer("d_model", 1);
  return schedule;
}

// The largest relative difference from the file. The file's noam counts from 1, and its linear schedule continues below
// its minimum.
double worst_of(const GoldenFile& file, const std::string& name, double falsified = 1) {
  const LearningRateSchedule schedule = schedule_of(file, name);
  const auto steps = file.read<std::int64_t>("schedules/steps").values;
  const auto rates = file.read<double>("schedules/" + name).values;
  REQUIRE(rates.size() == steps.size());
  double worst = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t step = name == "noam" ? steps[i] - 1 : steps[i];
    if (step < 0) {
      CHECK(rates[i] == 0);
      continue;
    }
    double expected = rates[i] * falsified;
    if (name == "linear_translation" && step > schedule.total_steps) {  // this program's stays at its minimum
      const double slope = (schedule.initial_rate - schedule.end_rate) /
                           static_cast<double>(schedule.total_steps - schedule.warmup_steps);
      CHECK(rates[i] ==
            Approx(schedule.end_rate - slope * static_cast<double>(step - schedule.total_steps)).epsilon(1e-9));
      expected = schedule.end_rate;
    }
    test::keep_worst(worst, std::abs(learning_rate(schedule, step) - expected) / std::max(std::abs(expected), 1e-12));
  }
  return worst;
}

}  // namespace

TEST_CASE("schedules of translation have the rates of the formulas", "[optim][golden]") {
  test::for_each_file_with("schedules/steps", [](const GoldenFile& file) {
    int compared = 0;
    for (const std::string& name : file.data_sets("schedules")) {
      if (name == "steps") continue;
      CAPTURE(name);
      CHECK(worst_of(file, name) < 1e-10);
      CHECK(worst_of(file, name, 1.001) > 1e-4);
      CHECK(worst_of(file, name, std::nan("")) > 1e-4);
      ++compared;
    }
    CHECK(compared > 0);
    file.require_all_read("schedules");
  });
}

TEST_CASE("schedules of translation have the rates of the specification's table", "[optim]") {
  LearningRateSchedule schedule{.initial_rate = 1e-3, .total_steps = 100000, .warmup_steps = 8000};
  schedule.start_rate = 1e-7;
  schedule.kind = ScheduleKind::inverse_sqrt;
  for (const auto& [step, rate] : {std::pair(0, 1e-7),
                                   {1, 2.249875e-7},
                                   {7999, 9.998750e-4},
                                   {8000, 1e-3},
                                   {32000, 5e-4},
                                   {100000, 2.828427e-4}}) {
    CHECK(learning_rate(schedule, step) == Approx(rate).epsilon(1e-6));
  }
  schedule.kind = ScheduleKind::linear;
  schedule.end_rate = 1e-9;
  CHECK(learning_rate(schedule, 32000) == Approx(7.391307e-4).epsilon(1e-6));
  CHECK(learning_rate(schedule, 100000) == Approx(1e-9));
  CHECK(learning_rate(schedule, 200000) == Approx(1e-9));
  const LearningRateSchedule noam{.initial_rate = 1, .warmup_steps = 4000, .kind = ScheduleKind::noam, .width = 512};
  for (const auto& [step, rate] : {std::pair(1, 1.746928e-7),
                                   {100, 1.746928e-5},
                                   {2000, 3.493856e-4},
                                   {4000, 6.987712e-4},
                                   {8000, 4.941059e-4},
                                   {100000, 1.397542e-4}}) {
    CHECK(learning_rate(noam, step - 1) == Approx(rate).epsilon(1e-6));
  }
  schedule.warmup_steps = 0;
  for (const ScheduleKind kind : {ScheduleKind::inverse_sqrt, ScheduleKind::linear, ScheduleKind::polynomial}) {
    schedule.kind = kind;
    CHECK(learning_rate(schedule, 0) == 1e-3);  // without a warm-up they begin at their peak
  }
}

TEST_CASE("a linear schedule falls along a line whatever the power", "[optim]") {
  LearningRateSchedule bent{.initial_rate = 1, .total_steps = 100, .power = 2};
  bent.kind = ScheduleKind::linear;
  CHECK(learning_rate(bent, 25) == Approx(0.75));
  CHECK(learning_rate(bent, 50) == Approx(0.5));
}

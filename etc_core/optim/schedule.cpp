#include "etc_core/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/words.h"

namespace etc {

namespace {

double real(std::int64_t number) {
  return static_cast<double>(number);
}

void check(const LearningRateSchedule& schedule) {
  for (const auto& [name, rate] : {std::pair("learning rate", schedule.initial_rate),
                                   {"start rate", schedule.start_rate},
                                   {"end rate", schedule.end_rate}}) {
    if (!std::isfinite(rate) || rate < 0) fail_usage("schedule", "{}: expected a number >= 0, got {}", name, rate);
  }
  if (schedule.total_steps < 1)
    fail_usage("schedule", "total steps: expected at least 1, got {}", schedule.total_steps);
  if (schedule.warmup_steps < 0) {
    fail_usage("schedule", "warm-up steps: expected at least 0, got {}", schedule.warmup_steps);
  }
  if (!(schedule.power > 0)) fail_usage("schedule", "power: expected a number > 0, got {}", schedule.power);
  if (schedule.width < 1) fail_usage("schedule", "width: expected at least 1, got {}", schedule.width);
}

double bert_rate(const LearningRateSchedule& schedule, std::int64_t step) {
  const std::int64_t total = schedule.total_steps, warmup = schedule.warmup_steps, start = schedule.start_warmup_step;
  if (warmup > 0 && step - start < warmup) {
    if (step < start) fail("schedule", "step {} lies before the start of the warm-up, {}", step, start);
    return schedule.initial_rate * real(step - start) / real(warmup);
  }
  return schedule.initial_rate * std::pow(1.0 - real(std::min(step, total)) / real(total), schedule.power);
}

// The rate that falls from the peak at the end of the warm-up to the end rate at the last step.
double falling_rate(const LearningRateSchedule& schedule, std::int64_t step, double power) {
  const std::int64_t total = schedule.total_steps, warmup = schedule.warmup_steps;
  if (step >= total) return schedule.end_rate;
  const double left = 1 - real(step - warmup) / real(total - warmup);
  return (schedule.initial_rate - schedule.end_rate) * std::pow(left, power) + schedule.end_rate;
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = {"bert", "inverse_sqrt", "linear", "polynomial", "noam"};
  return kNames;
}

ScheduleKind schedule_kind(const std::string& name) {
  const std::vector<std::string>& names = schedule_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fail_usage("schedule", "expected one of {}, got {}{}", fmt::join(names, ", "), name, suggestion(name, names));
  }
  return static_cast<ScheduleKind>(found - names.begin());
}

double learning_rate(const LearningRateSchedule& schedule, std::int64_t step) {
  check(schedule);
  const double rate = schedule.initial_rate;
  const std::int64_t warmup = schedule.warmup_steps, at_least_1 = std::max<std::int64_t>(warmup, 1);
  const auto rising = [&] { return schedule.start_rate + real(step) * (rate - schedule.start_rate) / real(warmup); };
  switch (schedule.kind) {
    case ScheduleKind::inverse_sqrt:
      if (step < warmup) return rising();
      return rate * std::sqrt(real(at_least_1)) / std::sqrt(real(std::max<std::int64_t>(step, 1)));
    case ScheduleKind::linear:
      return step < warmup ? rising() : falling_rate(schedule, step, 1);
    case ScheduleKind::polynomial:
      return warmup > 0 && step <= warmup ? rate * real(step) / real(warmup)
                                          : falling_rate(schedule, step, schedule.power);
    case ScheduleKind::noam:
      return rate / std::sqrt(real(schedule.width)) *
             std::min(1 / std::sqrt(real(step + 1)), real(step + 1) * std::pow(real(at_least_1), -1.5));
    default:
      return bert_rate(schedule, step);
  }
}

std::int64_t total_training_steps(std::int64_t examples, std::int64_t batch_examples, double epochs) {
  if (batch_examples < 1) fail_usage("schedule", "batch size: expected at least 1, got {}", batch_examples);
  return static_cast<std::int64_t>(static_cast<double>(examples) / static_cast<double>(batch_examples) * epochs);
}

std::int64_t warmup_training_steps(std::int64_t total_steps, double warmup_proportion) {
  return static_cast<std::int64_t>(static_cast<double>(total_steps) * warmup_proportion);
}

}  // namespace etc

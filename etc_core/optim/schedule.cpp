#include "etc_core/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"

namespace etc {

double learning_rate(const LearningRateSchedule& schedule, std::int64_t step) {
  const auto& [rate, total, warmup, start, power] = schedule;
  if (!std::isfinite(rate) || rate < 0) fail_usage("schedule", "learning rate: expected a number >= 0, got {}", rate);
  if (total < 1) fail_usage("schedule", "total steps: expected at least 1, got {}", total);
  if (warmup < 0) fail_usage("schedule", "warm-up steps: expected at least 0, got {}", warmup);
  if (!(power > 0)) fail_usage("schedule", "power: expected a number > 0, got {}", power);
  if (warmup > 0 && step - start < warmup) {
    if (step < start) fail("schedule", "step {} lies before the start of the warm-up, {}", step, start);
    return rate * static_cast<double>(step - start) / static_cast<double>(warmup);
  }
  return rate * std::pow(1.0 - static_cast<double>(std::min(step, total)) / static_cast<double>(total), power);
}

std::int64_t total_training_steps(std::int64_t examples, std::int64_t batch_examples, double epochs) {
  if (batch_examples < 1) fail_usage("schedule", "batch size: expected at least 1, got {}", batch_examples);
  return static_cast<std::int64_t>(static_cast<double>(examples) / static_cast<double>(batch_examples) * epochs);
}

std::int64_t warmup_training_steps(std::int64_t total_steps, double warmup_proportion) {
  return static_cast<std::int64_t>(static_cast<double>(total_steps) * warmup_proportion);
}

}  // namespace etc

// The learning rate of every step: a linear warm-up, then polynomial decay (etc-core 10.1).
#pragma once

#include <cstdint>

namespace etc {

struct LearningRateSchedule {
  double initial_rate = 0;             // η
  std::int64_t total_steps = 1;        // decay ends here
  std::int64_t warmup_steps = 0;       // 0: no warm-up
  std::int64_t start_warmup_step = 0;  // t₀
  double power = 1;                    // q
};

// The rate of update number `step` (counted from 0):
//   η·(step - t₀)/warmup_steps             while that is below η
//   η·(1 - min(step, total)/total)^q       afterwards
// Rules: the first update has rate 0. Decay counts from step 0, not from the end of the warm-up, so the rate jumps down
//   there: with η = 5e-5, 1000 steps and 100 of warm-up, step 99 has 4.95e-5 and step 100 has 4.5e-5. Throws UsageError
//   when total_steps < 1, warmup_steps < 0, power <= 0 or η is negative or not a number, and Error for a step before
//   t₀ during a warm-up, where the formula is negative.
double learning_rate(const LearningRateSchedule& schedule, std::int64_t step);

// Updates of a whole run, rounded down: examples/batch·epochs; and those of its warm-up.
std::int64_t total_training_steps(std::int64_t examples, std::int64_t batch_examples, double epochs);
std::int64_t warmup_training_steps(std::int64_t total_steps, double warmup_proportion);

}  // namespace etc

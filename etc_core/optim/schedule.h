// The learning rate of every step: BERT's schedule (etc-core 10.1) and the schedules for translation (translation 7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etc {

// t: updates done so far; W warm-up, T total, η the rate at its peak, η₀ at the start, η₁ at the end, q the power.
//   bert           η·(t - t₀)/W while that is below η, then η·(1 - min(t, T)/T)^q                       etc-core 10.1
//   inverse_sqrt   η₀ + t·(η - η₀)/W, then η·sqrt(W)/sqrt(t)                                            fairseq
//   linear         η₀ + t·(η - η₀)/W, then η₁ + (η - η₁)·(1 - (t-W)/(T-W)), from T on η₁                ADMIN's program
//   polynomial     η·t/W up to t = W, then η₁ + (η - η₁)·(1 - (t-W)/(T-W))^q, from T on η₁              fairseq
//   noam           η·H^-0.5·min(s^-0.5, s·W^-1.5), s = t + 1; H the model's width                       Vaswani et al. 2017
enum class ScheduleKind { bert, inverse_sqrt, linear, polynomial, noam };

// Their names, in that order; the kind of a name, else UsageError with a suggestion.
const std::vector<std::string>& schedule_names();
ScheduleKind schedule_kind(const std::string& name);

struct LearningRateSchedule {
  double initial_rate = 0;             // η
  std::int64_t total_steps = 1;        // T: decay ends here
  std::int64_t warmup_steps = 0;       // W; 0: no warm-up
  std::int64_t start_warmup_step = 0;  // t₀ of bert
  double power = 1;                    // q
  ScheduleKind kind = ScheduleKind::bert;
  double start_rate = 0;   // η₀
  double end_rate = 0;     // η₁
  std::int64_t width = 1;  // H of noam
};

// The rate of update number `step` (counted from 0).
// Rules: with bert the first update has rate 0, and decay counts from step 0, not from the end of the warm-up, so the
//   rate jumps down there: with η = 5e-5, 1000 steps and 100 of warm-up, step 99 has 4.95e-5 and step 100 has 4.5e-5. The
//   others begin their decay at η. Without a warm-up inverse_sqrt and noam take t and W as at least 1. Throws UsageError
//   when total_steps < 1, warmup_steps < 0, power <= 0, width < 1 or a rate is negative or not a number, and Error for a
//   step before t₀ during bert's warm-up, where the formula is negative.
double learning_rate(const LearningRateSchedule& schedule, std::int64_t step);

// The number of updates of a whole run, examples/batch·epochs rounded down (UsageError for a batch < 1), and of its
// warm-up.
std::int64_t total_training_steps(std::int64_t examples, std::int64_t batch_examples, double epochs);
std::int64_t warmup_training_steps(std::int64_t total_steps, double warmup_proportion);

}  // namespace etc

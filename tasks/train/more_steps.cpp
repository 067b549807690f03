#include "tasks/train/more_steps.h"

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/optim/schedule.h"
#include "tasks/train/plan.h"

namespace etc {

namespace {

// The plan that the run was started with.
Plan plan_before(const Json& identity, RunConfig config, const data::DatasetReader& train) {
  const Json stored = identity.value("training", Json::object());
  config.training.steps = stored.value("steps", config.training.steps);
  config.training.epochs = stored.value("epochs", config.training.epochs);
  return make_plan(config, train);
}

bool equal_rates(const LearningRateSchedule& a, const LearningRateSchedule& b, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) {
    if (learning_rate(a, step) != learning_rate(b, step)) return false;
  }
  return true;
}

}  // namespace

bool stops_early(const TrainingConfig& training, const RunProgress& progress) {
  return training.early_stopping > 0 && progress.stale_evaluations >= training.early_stopping;
}

void take_more_steps(const std::filesystem::path& last, const RunConfig& config, const data::DatasetReader& train,
                     const RunProgress& done) {
  const Plan before = plan_before(read_run_identity(last), config, train), now = make_plan(config, train);
  if (before.total_steps == now.total_steps) return;
  if (before.total_steps > now.total_steps) {
    fail(last.string(),
         "cannot be resumed: the run was started with {} steps, now it has {}: expected as many or more (another "
         "--output starts a run of its own)",
         before.total_steps, now.total_steps);
  }
  if (stops_early(config.training, done)) {
    fail(last.string(),
         "cannot take more steps: the run stopped early, after {} evaluations without a better result (a larger "
         "--early-stopping than that, or 0: never)",
         done.stale_evaluations);
  }
  if (equal_rates(before.schedule, now.schedule, done.step)) {
    log::info("more steps, {} instead of {}: the weights are those of a run that was started with {}", now.total_steps,
              before.total_steps, now.total_steps);
    return;
  }
  log::warn(
      "more steps, {} instead of {}: the rates of schedule {} depend on how many there are. The {} steps that are done "
      "had those of a run of {}; the next one has {:.3g}, where that run would have {:.3g}. So the weights are not "
      "those "
      "of a run that was started with {} (inverse_sqrt and noam with --warmup-steps do not depend on it)",
      now.total_steps, before.total_steps, config.training.schedule, done.step, before.total_steps,
      learning_rate(now.schedule, done.step), learning_rate(before.schedule, done.step), now.total_steps);
}

}  // namespace etc

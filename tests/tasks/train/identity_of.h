// The identity of a run of this configuration on the CPU (run_state.h).
#pragma once

#include "etc_core/base/json.h"
#include "tasks/registry.h"
#include "tasks/train/plan.h"
#include "tasks/train/run_state.h"

namespace etc::test {

inline Json identity_of(const RunConfig& config) {
  const auto task = make_task(config.task, *config.model);
  return run_identity(config, open_run_data(config.data, *task), {});
}

}  // namespace etc::test

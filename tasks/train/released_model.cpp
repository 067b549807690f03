#include "tasks/train/released_model.h"

namespace etc {

void release_kernels(TaskModel& model, ComputeType compute) {
  model.encoder->release_kernels(compute);
  if (auto* const head = dynamic_cast<PacksHead*>(model.task.get())) head->release_head(compute);
}

}  // namespace etc

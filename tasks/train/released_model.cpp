#include "tasks/train/released_model.h"

namespace etc {

void release_kernels(TaskModel& model, InferenceTypes types) {
  model.encoder->release_kernels(types);
  if (auto* const head = dynamic_cast<PacksHead*>(model.task.get())) head->release_head(types.compute);
}

}  // namespace etc

// A trained model that from now on only runs: its dense layers packed, in the number type asked for.
#pragma once

#include "etc_core/base/compute_type.h"
#include "tasks/train/model.h"

namespace etc {

// A task whose head has dense layers to pack, as the encoder has; heads of other tasks compute in fp32.
class PacksHead {
 public:
  virtual ~PacksHead() = default;
  // As Encoder::release_kernels, for the head.
  virtual void release_head(ComputeType compute) = 0;
};

// Encoder and head. Before predictions are started: what they read of the head is packed, too. Throws Error as
// Encoder::release_kernels.
void release_kernels(TaskModel& model, InferenceTypes types);

}  // namespace etc

// A trained model prepared for inference only: its dense layers are packed, in the requested number type.
#pragma once

#include "etc_core/base/compute_type.h"
#include "tasks/train/model.h"

namespace etc {

// A task whose head, like the encoder, has dense layers to pack; heads of other tasks compute in fp32.
class PacksHead {
 public:
  virtual ~PacksHead() = default;
  // The counterpart of Encoder::release_kernels for the head.
  virtual void release_head(ComputeType compute) = 0;
};

// For encoder and head. Call before predictions are started, because the parts of the head that they read are packed,
// too. Throws Error as Encoder::release_kernels.
void release_kernels(TaskModel& model, InferenceTypes types);

}  // namespace etc

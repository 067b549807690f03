// Logits for code that reads their values on the host.
#pragma once

#include "tasks/task.h"

namespace etc {

// The same logits on the host, without gradients.
inline HeadOutput on_host(const HeadOutput& logits) {
  HeadOutput copies;
  for (const Var& logit : logits) copies.emplace_back(logit.value().to(Device::cpu));
  return copies;
}

}  // namespace etc

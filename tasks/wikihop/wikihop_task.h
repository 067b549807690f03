// WikiHop as the trainer knows a task: schema, feed, head, loss, accuracy and prediction file put together.
#pragma once

#include "tasks/task.h"

namespace etc::wikihop {

const TaskKind& task_kind();

}  // namespace etc::wikihop

// The Natural Questions task, for the list of tasks.
#pragma once

#include "tasks/task.h"

namespace etc::nq {

const TaskKind& task_kind();

}  // namespace etc::nq

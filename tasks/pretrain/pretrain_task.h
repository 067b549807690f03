// The pre-training task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::pretrain {

const TaskKind& task_kind();

}  // namespace etc::pretrain

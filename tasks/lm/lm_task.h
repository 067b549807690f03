// The language model task, for the list of tasks.
#pragma once

#include "tasks/task.h"

namespace etc::lm {

const TaskKind& task_kind();

}  // namespace etc::lm

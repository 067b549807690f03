// The language model task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::lm {

const TaskKind& task_kind();

}  // namespace etc::lm

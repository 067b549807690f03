// Natural Questions as one entry of the list of tasks.
#pragma once

#include "tasks/task.h"

namespace etc::nq {

const TaskKind& task_kind();

}  // namespace etc::nq

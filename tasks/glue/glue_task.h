// GLUE as one entry of the list of tasks: a key says which data set.
#pragma once

#include "tasks/task.h"

namespace etc::glue {

const TaskKind& task_kind();

}  // namespace etc::glue

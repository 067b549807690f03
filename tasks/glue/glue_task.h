// The GLUE task, for the list of tasks; a key selects the data set.
#pragma once

#include "tasks/task_kind.h"

namespace etc::glue {

const TaskKind& task_kind();

}  // namespace etc::glue

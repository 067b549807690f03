// Translation as a task.
#pragma once

#include "tasks/task_kind.h"

namespace etc::translation {

// Keys and scores, for the row of the task in tasks/registry.cpp.
const TaskKind& task_kind();

}  // namespace etc::translation

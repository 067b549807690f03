// The Natural Questions task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::nq {

const TaskKind& task_kind();

}  // namespace etc::nq

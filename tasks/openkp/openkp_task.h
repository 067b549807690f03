// The OpenKP task, for the list of tasks.
#pragma once

#include "tasks/task.h"

namespace etc::openkp {

const TaskKind& task_kind();

}  // namespace etc::openkp

// The OpenKP task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::openkp {

const TaskKind& task_kind();

}  // namespace etc::openkp

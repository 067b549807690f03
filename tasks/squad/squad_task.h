// The SQuAD task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::squad {

const TaskKind& task_kind();

}  // namespace etc::squad

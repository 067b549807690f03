// The HotpotQA task, for the list of tasks.
#pragma once

#include "tasks/task.h"

namespace etc::hotpotqa {

const TaskKind& task_kind();

}  // namespace etc::hotpotqa

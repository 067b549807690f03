// The HotpotQA task, for the list of tasks.
#pragma once

#include "tasks/task_kind.h"

namespace etc::hotpotqa {

const TaskKind& task_kind();

}  // namespace etc::hotpotqa

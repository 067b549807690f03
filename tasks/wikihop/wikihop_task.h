// The WikiHop implementation of the trainer's Task interface: schema, feed, head, loss, accuracy and prediction file.
#pragma once

#include "tasks/task_kind.h"

namespace etc::wikihop {

const TaskKind& task_kind();

}  // namespace etc::wikihop

#include "tasks/task.h"

#include "etc_core/base/error.h"
#include "tasks/wikihop/wikihop_task.h"

namespace etc {

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> kKinds = {wikihop::task_kind()};
  return kKinds;
}

const TaskKind& task_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskKind& kind : task_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  fail_usage("task", "expected one of {}, got {}{}", fmt::join(names, ", "), name, suggestion(name, names));
}

}  // namespace etc

#include "tasks/task.h"

#include "etc_core/base/error.h"
#include "tasks/hotpotqa/hotpotqa_task.h"
#include "tasks/nq/nq_task.h"
#include "tasks/openkp/openkp_task.h"
#include "tasks/wikihop/wikihop_task.h"

namespace etc {

const std::vector<TaskKind>& task_kinds() {
  static const std::vector<TaskKind> kKinds = {wikihop::task_kind(), hotpotqa::task_kind(), nq::task_kind(),
                                               openkp::task_kind()};
  return kKinds;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskKind& kind : task_kinds()) names.push_back(kind.name);
  return names;
}

const TaskKind& task_kind(const std::string& name) {
  for (const TaskKind& kind : task_kinds()) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = task_names();
  fail_usage("task", "expected one of {}, got {}{}", fmt::join(names, ", "), name, suggestion(name, names));
}

std::unique_ptr<Task> make_task(const Json& section, const EtcConfig& model) {
  const TaskKind& kind = task_kind(section.at("name").get<std::string>());
  if (kind.make == nullptr) fail_usage("task", "{} can be scored (`etc eval`), but not yet trained", kind.name);
  return kind.make(section, model);
}

}  // namespace etc

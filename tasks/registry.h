// All tasks, one row each. This is the only place that includes the tasks' own headers; code that works with tasks of
// any kind looks them up here or is given one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/document.h"
#include "tasks/line_translator.h"
#include "tasks/prepare/preparation.h"
#include "tasks/sample.h"
#include "tasks/task_kind.h"

namespace etc {

struct TaskEntry {
  std::string name;
  TaskKind task;
  prepare::PreparationKind preparation;
  SampleKind sample;
  DocumentKind documents = {};     // without `make`: it cannot read documents
  TranslatorKind translator = {};  // without `open`: it cannot translate
};

const std::vector<TaskEntry>& task_entries();
const TaskEntry* find_task(const std::string& name);  // null: no such task
std::vector<std::string> task_names();                // in the order of the rows

// The parts of a task by its name: training and preparation. Each throws UsageError with a suggestion.
const TaskKind& task_kind(const std::string& name);
const prepare::PreparationKind& preparation_kind(const std::string& name);

// The key of section `task` that every task has: its name.
const Fields& task_name_fields();
// The name in a section `task`; "" if it has none. Throws UsageError when it is not a string.
std::string task_name(const Json& section);
// A section that holds only the name.
Json section_of_task(const std::string& name);

// The task described by a complete section `task`. Throws UsageError for a task that cannot be trained.
std::unique_ptr<Task> make_task(const Json& section, const EncoderConfig& model);

}  // namespace etc

// The tasks there are: one row each, the top floor of tasks/. The only place that includes the tasks' own headers;
// whoever works with a task of any kind finds it here or is given it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/document.h"
#include "tasks/line_translator.h"
#include "tasks/prepare/preparation.h"
#include "tasks/sample.h"
#include "tasks/task.h"

namespace etc {

struct TaskEntry {
  std::string name;
  TaskKind task;
  prepare::PreparationKind preparation;
  SampleKind sample;
  DocumentKind documents = {};     // without `make`: it reads no documents
  TranslatorKind translator = {};  // without `open`: it translates nothing
};

const std::vector<TaskEntry>& task_entries();
const TaskEntry* find_task(const std::string& name);  // null: there is none
std::vector<std::string> task_names();                // in the order of the rows

// The task of a name: what trains it, what prepares its records. Each throws UsageError with a suggestion.
const TaskKind& task_kind(const std::string& name);
const prepare::PreparationKind& preparation_kind(const std::string& name);

// The key of section `task` that every task has: its name.
const Fields& task_name_fields();
// Of a section `task`; "" where it says none. Throws UsageError when it is no string.
std::string task_name(const Json& section);
// A section that says the name alone.
Json section_of_task(const std::string& name);

// The task that a complete section `task` describes, by its name. Throws UsageError on one that cannot be trained.
std::unique_ptr<Task> make_task(const Json& section, const EncoderConfig& model);

}  // namespace etc

#include "tasks/registry.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "etc_core/nn/seq2seq/config.h"
#include "tasks/first_batch.h"
#include "tasks/glue/glue_task.h"
#include "tasks/glue/prepare.h"
#include "tasks/glue/sample.h"
#include "tasks/hotpotqa/document.h"
#include "tasks/hotpotqa/hotpotqa_task.h"
#include "tasks/hotpotqa/prepare.h"
#include "tasks/hotpotqa/sample.h"
#include "tasks/lm/lm_task.h"
#include "tasks/lm/prepare.h"
#include "tasks/lm/sample.h"
#include "tasks/nq/document.h"
#include "tasks/nq/nq_task.h"
#include "tasks/nq/prepare.h"
#include "tasks/nq/sample.h"
#include "tasks/openkp/document.h"
#include "tasks/openkp/openkp_task.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/sample.h"
#include "tasks/pretrain/prepare.h"
#include "tasks/pretrain/pretrain_task.h"
#include "tasks/pretrain/sample.h"
#include "tasks/squad/document.h"
#include "tasks/squad/prepare.h"
#include "tasks/squad/sample.h"
#include "tasks/squad/squad_task.h"
#include "tasks/translation/prepare.h"
#include "tasks/translation/sample.h"
#include "tasks/translation/translation_task.h"
#include "tasks/translation/translator.h"
#include "tasks/wikihop/prepare.h"
#include "tasks/wikihop/sample.h"
#include "tasks/wikihop/wikihop_task.h"

namespace etc {

namespace {

struct NamedTask {
  std::string name;
};

const FieldList<NamedTask>& name_fields() {
  static const FieldList<NamedTask> kFields{FieldEntry<NamedTask>{
      "name", &NamedTask::name, fmt::format("the task: {}", fmt::join(task_names(), ", ")).c_str()}
                                                .as_option("--task")};
  return kFields;
}

const TaskEntry& entry_of(const std::string& name) {
  if (const TaskEntry* entry = find_task(name)) return *entry;
  const std::vector<std::string> names = task_names();
  fail_usage("task", "expected one of {}, got {}{}", fmt::join(names, ", "), name, suggestion(name, names));
}

}  // namespace

const std::vector<TaskEntry>& task_entries() {
  static const std::vector<TaskEntry> kEntries = {
      {"wikihop", wikihop::task_kind(), wikihop::preparation_kind(), wikihop::sample_kind()},
      {"hotpotqa", hotpotqa::task_kind(), hotpotqa::preparation_kind(), hotpotqa::sample_kind(),
       hotpotqa::document_kind()},
      {"nq", nq::task_kind(), nq::preparation_kind(), nq::sample_kind(), nq::document_kind()},
      {"openkp", openkp::task_kind(), openkp::preparation_kind(), openkp::sample_kind(), openkp::document_kind()},
      {"pretrain", pretrain::task_kind(), pretrain::preparation_kind(), pretrain::sample_kind()},
      {"squad", squad::task_kind(), squad::preparation_kind(), squad::sample_kind(), squad::document_kind()},
      {"glue", glue::task_kind(), glue::preparation_kind(), glue::sample_kind()},
      {"translation",
       translation::task_kind(),
       translation::preparation_kind(),
       translation::sample_kind(),
       {},
       translation::translator_kind()},
      {"lm", lm::task_kind(), lm::preparation_kind(), lm::sample_kind()},
  };
  return kEntries;
}

const TaskEntry* find_task(const std::string& name) {
  const auto& entries = task_entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const TaskEntry& e) { return e.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskEntry& entry : task_entries()) names.push_back(entry.name);
  return names;
}

const TaskKind& task_kind(const std::string& name) {
  return entry_of(name).task;
}

const prepare::PreparationKind& preparation_kind(const std::string& name) {
  return entry_of(name).preparation;
}

const Fields& task_name_fields() {
  return name_fields();
}

std::string task_name(const Json& section) {
  return name_fields().read(section, "config", "task.").name;
}

Json section_of_task(const std::string& name) {
  return name_fields().to_json({name});
}

std::unique_ptr<Task> make_task(const Json& section, const EncoderConfig& model) {
  const std::string name = task_name(section);
  std::unique_ptr<Task> task = task_kind(name).make(section, model);
  if (dynamic_cast<const Seq2SeqConfig*>(&model) != nullptr &&
      dynamic_cast<const SetsWeightsFromData*>(task.get()) == nullptr) {
    fail_usage("config", "model.kind: task {} reads the states of an encoder: expected etc or dense, got seq2seq",
               name);
  }
  return task;
}

}  // namespace etc

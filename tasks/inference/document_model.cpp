#include "tasks/inference/document_model.h"

#include "etc_core/base/error.h"
#include "tasks/registry.h"

namespace etc {

namespace {

const DocumentKind* documents_of(const std::string& task) {
  for (const TaskEntry& entry : task_entries()) {
    if (entry.name == task && entry.documents.make != nullptr) return &entry.documents;
  }
  return nullptr;
}

}  // namespace

void require_documents(const RecordModel& model, bool asks, const std::string& where) {
  const DocumentKind* kind = documents_of(model.task());
  if (kind != nullptr && kind->asks == asks) return;
  std::vector<std::string> able;
  for (const TaskEntry& entry : task_entries()) {
    if (entry.documents.make != nullptr && entry.documents.asks == asks) able.push_back(entry.name);
  }
  fail_usage(where,
             "--model: expected a model of {}, got one of {} (etc predict --input reads that task's own records)",
             fmt::join(able, " or "), model.task());
}

Json answer_document(RecordModel& model, std::string_view document, data::DocumentForm form,
                     const std::string& question, const std::string& name) {
  data::require_text(document, name);
  const DocumentKind& kind = *documents_of(model.task());
  if (kind.asks && model.tokenizer().encode_ids(question).empty()) {
    fail_usage(name, "expected a question with a word in it, got {}",
               question.empty() ? "none" : "\"" + question + "\"");
  }
  const OwnDocument own{document, data::read_blocks(document, form)};
  if (own.blocks.empty()) fail(name, "there is no text in the document, only tags and marks");
  const auto record = kind.make(own, question);
  const std::vector<data::LoadedExample> examples = model.prepare(record->record(), name);
  Json answer = record->in_document(model.answer(examples, name));
  const TokenCount tokens = record->count(model.tokenizer(), examples);
  answer["tokens"] = {{"read", tokens.read}, {"cut", tokens.cut}};
  return answer;
}

}  // namespace etc

#include "tasks/inference/document_model.h"

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "tasks/registry.h"

namespace etc {

namespace {

const DocumentKind* documents_of(const std::string& task) {
  const TaskEntry* const own = find_task(task);
  return own != nullptr && own->documents.make != nullptr ? &own->documents : nullptr;
}

}  // namespace

DocumentUse document_use(const std::string& task) {
  const DocumentKind* kind = documents_of(task);
  if (kind == nullptr) return DocumentUse::none;
  return kind->asks ? DocumentUse::ask : DocumentUse::keyphrases;
}

void require_documents(const std::filesystem::path& folder, const std::string& task, DocumentUse use,
                       const std::string& where) {
  if (document_use(task) == use) return;
  std::vector<std::string> able;
  for (const TaskEntry& entry : task_entries()) {
    if (document_use(entry.name) == use) able.push_back(entry.name);
  }
  std::string other = answers_records(folder) ? " (etc predict --input reads that task's own records)" : "";
  if (document_use(task) == DocumentUse::ask) other = " (etc ask reads documents with it)";
  if (document_use(task) == DocumentUse::keyphrases) other = " (etc keyphrases reads documents with it)";
  fail_usage(where, "--model: expected a model of {}, got one of {}{}", alternatives(able), task, other);
}

AskedDocument::AskedDocument(const RecordModel& model, std::string_view document, data::DocumentForm form,
                             const std::string& question, const std::string& name) {
  data::require_text(document, name);
  const DocumentKind* kind = documents_of(model.task());
  if (kind == nullptr) fail_usage(name, "a model of {} reads no documents", model.task());
  if (const auto at = data::invalid_utf8(question)) {
    fail_usage(name, "expected a question in UTF-8, got one whose byte {} is not", *at);
  }
  if (kind->asks && model.tokenizer().encode_ids(question).empty()) {
    fail_usage(name, "expected a question with a word in it, got {}",
               question.empty() ? "none" : "\"" + question + "\"");
  }
  own_ = {document, data::read_blocks(document, form)};
  if (own_.blocks.empty()) fail(name, "there is no text in the document, only tags and marks");
  record_ = kind->make(own_, question);
  examples_ = model.prepare(record_->record(), name);
  tokens_ = record_->count(model.tokenizer(), examples_);
}

Json AskedDocument::in_document(const Json& answer) const {
  Json told = record_->in_document(answer);
  told["tokens"] = {{"read", tokens_.read}, {"cut", tokens_.cut}};
  return told;
}

Json answer_document(RecordModel& model, std::string_view document, data::DocumentForm form,
                     const std::string& question, const std::string& name) {
  AskedDocument asked(model, document, form, question, name);
  return asked.in_document(model.answer(asked.examples(), name));
}

}  // namespace etc

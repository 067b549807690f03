// Questions about a person's own documents, and their key phrases: a loaded model and a text in, an answer with its
// places in that text out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/document.h"
#include "etc_core/base/not_copied.h"
#include "tasks/document.h"
#include "tasks/inference/record_model.h"

namespace etc {

// What a task does with documents.
DocumentUse document_use(const std::string& task);

// Throws UsageError where the task of the model in this folder has not this use, naming those that have.
void require_documents(const std::filesystem::path& folder, const std::string& task, DocumentUse use,
                       const std::string& where);

// A document that a model is asked about: prepared as a record, answered by whoever computes the answer to its examples.
class AskedDocument : NotCopied {
 public:
  // question  empty where the task asks none
  // name      of the document in messages
  // Thread-safe, with one model. Throws Error where the document is no text (data::require_text) or has none but tags,
  // UsageError where the question is not UTF-8 or has no token, or the model's task reads no documents.
  AskedDocument(const RecordModel& model, std::string_view document, data::DocumentForm form,
                const std::string& question, const std::string& name);

  std::vector<data::LoadedExample>& examples() { return examples_; }

  // answer: to the examples. Returns the answer that tasks/ANSWERS.md lists under "Documents", with "tokens": {"read",
  // "cut"}. The document's text must still be there.
  Json in_document(const Json& answer) const;

 private:
  OwnDocument own_;
  std::unique_ptr<DocumentRecord> record_;
  std::vector<data::LoadedExample> examples_;
  TokenCount tokens_;
};

// The answer that tasks/ANSWERS.md lists under "Documents". Arguments and errors are those of AskedDocument.
Json answer_document(RecordModel& model, std::string_view document, data::DocumentForm form,
                     const std::string& question, const std::string& name);

}  // namespace etc

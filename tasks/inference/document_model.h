// Questions about a user's own documents, and their key phrases: takes a loaded model and a text, returns an answer
// with its positions in that text.
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

// The use that a task makes of documents.
DocumentUse document_use(const std::string& task);

// Throws UsageError if the task of the model in this folder does not support this use, naming the tasks that do.
void require_documents(const std::filesystem::path& folder, const std::string& task, DocumentUse use,
                       const std::string& where);

// A document that a model is asked about: prepared as a record; the caller computes the answer to its examples.
class AskedDocument : NotCopied {
 public:
  // question  empty if the task asks none
  // name      of the document in messages
  // Thread-safe, with one model. Throws Error if the document is not a text (data::require_text) or contains only tags,
  // UsageError if the question is not UTF-8 or has no token, or the model's task cannot read documents.
  AskedDocument(const RecordModel& model, std::string_view document, data::DocumentForm form,
                const std::string& question, const std::string& name);

  std::vector<data::LoadedExample>& examples() { return examples_; }

  // answer: to the examples. Returns the answer that tasks/ANSWERS.md lists under "Documents", with "tokens": {"read",
  // "cut"}. The document's text must still exist.
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

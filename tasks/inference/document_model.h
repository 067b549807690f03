// Questions about a person's own documents, and their key phrases: a loaded model and a text in, an answer with its
// places in that text out.
#pragma once

#include <string>
#include <string_view>

#include "data/text/document.h"
#include "tasks/inference/record_model.h"

namespace etc {

// Throws UsageError where the model's task does not answer questions about documents (asks), or finds no key phrases in
// them (not asks), naming those that do.
void require_documents(const RecordModel& model, bool asks, const std::string& where);

// The answer that tasks/ANSWERS.md lists under "Documents", with "tokens": {"read", "cut"}.
//   question  empty where the task asks none
//   name      of the document in messages
// Throws Error where the document is no text (data::require_text) or has none but tags, UsageError where the question has
// no token.
Json answer_document(RecordModel& model, std::string_view document, data::DocumentForm form,
                     const std::string& question, const std::string& name);

}  // namespace etc

// What a task is to `etc ask` and `etc keyphrases`: a person's own document becomes one raw record of the task, and the
// answer to that record is told in places of the document.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/document.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tasks/task.h"

namespace etc {

// A document that has been read as text; views of it.
struct OwnDocument {
  std::string_view text;  // as its owner has it, Markdown and tags included
  std::vector<data::TextBlock> blocks;

  // The JSON members "start" and "end": characters of the document, end exclusive.
  Json place(data::ByteSpan bytes) const;
  // Of bytes [begin, end) of a block's text, begin < end; also "text", these bytes.
  Json place(std::size_t block, std::size_t begin, std::size_t end) const;
};

// Vocabulary tokens of question and text, those that stand for no text aside.
struct TokenCount {
  std::int64_t read = 0;  // that the model saw
  std::int64_t cut = 0;   // that it did not: beyond its lengths, or where the task does not look
};

class DocumentRecord {
 public:
  virtual ~DocumentRecord() = default;
  virtual const Json& record() const = 0;  // as the task's raw files hold it
  // answer: RecordAnswer::finish() of that record. Returns the members that tasks/ANSWERS.md lists for documents.
  virtual Json in_document(const Json& answer) const = 0;
  // examples: the record's.
  virtual TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const = 0;
};

// The reader of documents as the task's row of tasks/registry.h holds it.
struct DocumentKind {
  bool asks = false;  // whether a question is asked of the document
  // The document outlives the record. Null: the task reads records of its own form only.
  std::unique_ptr<DocumentRecord> (*make)(const OwnDocument& document, const std::string& question) = nullptr;
};

}  // namespace etc

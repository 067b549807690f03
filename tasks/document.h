// The interface of a task for `etc ask` and `etc keyphrases`: a user's document becomes one raw record of the task, and
// the answer to that record is mapped back to positions of the document.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/document.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/json_fwd.h"
#include "tasks/task.h"

namespace etc {

// A document read as text blocks, with views into it.
struct OwnDocument {
  std::string_view text;  // the original text, including Markdown and tags
  std::vector<data::TextBlock> blocks;

  // The JSON members "start" and "end": characters of the document, end exclusive.
  Json place(data::ByteSpan bytes) const;
  // For bytes [begin, end) of a block's text, begin < end; also the member "text", these bytes.
  Json place(std::size_t block, std::size_t begin, std::size_t end) const;
};

// Vocabulary tokens of question and text, without special tokens.
struct TokenCount {
  std::int64_t read = 0;  // tokens the model read
  std::int64_t cut = 0;   // tokens it did not: beyond its lengths, or in parts the task ignores
};

class DocumentRecord {
 public:
  virtual ~DocumentRecord() = default;
  virtual const Json& record() const = 0;  // in the form of the task's raw files
  // answer: RecordAnswer::finish() of that record. Returns the members that tasks/ANSWERS.md lists for documents.
  virtual Json in_document(const Json& answer) const = 0;
  // examples: the record's.
  virtual TokenCount count(const data::Tokenizer& tokenizer, Examples examples) const = 0;
};

// The reader of documents as stored in the task's row of tasks/registry.h.
struct DocumentKind {
  bool asks = false;  // whether a question is asked of the document
  // The document must outlive the record. Null: the task cannot read documents.
  std::unique_ptr<DocumentRecord> (*make)(const OwnDocument& document, const std::string& question) = nullptr;
};

}  // namespace etc

// A document → its sentences. Two splitters: ICU's sentence boundaries (built in) and Punkt (tables given by path).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace etc::data {

struct ByteSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // exclusive
};

class SentenceSplitter {
 public:
  virtual ~SentenceSplitter() = default;

  // Byte spans of the sentences of a UTF-8 document, in order, without white space between them (Punkt: the first keeps
  // white space at the document's start, task-wikihop 2.3). A document of white space only has none. Thread-safe.
  virtual std::vector<ByteSpan> split(std::string_view utf8) const = 0;

  virtual std::string name() const = 0;           // "icu" | "punkt"
  virtual std::string tables_sha256() const = 0;  // over the tables' bytes; "" for ICU (its version is unicode_version)
};

// "icu", or "punkt:DIR" with DIR holding abbrev_types.txt, collocations.tab, sent_starters.txt, ortho_context.tab.
// Throws UsageError on any other specification, Error naming the file on missing or malformed tables.
std::unique_ptr<SentenceSplitter> load_splitter(const std::string& specification);

}  // namespace etc::data

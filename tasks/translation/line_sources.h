// Converts lines of text to sources for translation, with the options of `etc translate` (translation 8, 14).
#pragma once

#include <memory>

#include "data/text/tokenizer.h"
#include "etc_core/base/fields.h"
#include "tasks/line_translator.h"
#include "tasks/translation/decode/translate.h"

namespace etc::translation {

struct TranslatorOptions : SearchOptions {
  std::int64_t batch_tokens = 4096;
  bool truncate_source = false;
};

const FieldList<TranslatorOptions>& translator_options();
// given: keys whose value is not the default. Throws UsageError on values outside their ranges, and if the minimum length of
// translations exceeds the maximum.
TranslatorOptions read_translator_options(const Json& given);

// Reads sources and counts the pieces of all lines so far.
class LineSources {
 public:
  LineSources(std::shared_ptr<const data::Tokenizer> tokenizer, const TranslatorOptions& options)
      : tokenizer_(std::move(tokenizer)), options_(options) {}

  // The pieces of each line and its prefix; empty for a line without a word and for one that is not UTF-8, which is logged.
  // Throws Error naming a line with more pieces than options.limit, </s> included, unless truncation is set, and a line
  // whose prefix is not UTF-8, has special pieces, or is longer than a translation may be.
  std::vector<TranslationSource> read(std::span<const SourceLine> lines, std::int64_t first_line);

  std::int64_t pieces() const { return pieces_; }  // without </s>
  std::int64_t unknown_pieces() const { return unknown_; }

 private:
  TranslationSource source_of(const SourceLine& line, std::int64_t number);
  std::vector<std::int32_t> prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const;

  std::shared_ptr<const data::Tokenizer> tokenizer_;
  TranslatorOptions options_;
  std::int64_t pieces_ = 0, unknown_ = 0;
};

}  // namespace etc::translation

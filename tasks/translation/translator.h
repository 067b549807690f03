// Trained encoder-decoders as what translates lines of text (translation 8, 14).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/not_copied.h"
#include "tasks/translation/decode/translate.h"

namespace etc::translation {

struct Translation {
  std::string text;
  double score = 0;  // sum of log-probabilities / length^α
};

// A line of text, and the text that its translation begins with; empty: any.
struct SourceLine {
  std::string text, prefix;
};

// Where a model computes, and in which number type its dense layers and its output layer do; norms, attention (but on
// devices with bf16 tiles) and the search are fp32 or more.
struct TranslatorCompute {
  Device device = Device::cpu;
  ComputeType type = ComputeType::fp32;
};

class Translator : NotCopied {
 public:
  // folders: of one model, or of an ensemble's with one vocabulary. vocab: instead of the one that the first folder
  // keeps; empty: that one. Throws Error on a folder without an encoder-decoder, vocabularies that differ (both hashes)
  // or that are not as large as the model's tables; UsageError where no folder is named or the vocabulary is not known.
  Translator(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& vocab,
             const TranslatorCompute& compute);
  ~Translator();

  // The translations of each line, best first, as many as the beam has found. A line without a word has none, nor has one
  // that is not UTF-8, which the log says. The special tokens of options.search are set here.
  // first_line: the number of the first one, for messages. truncate: a line of more pieces than options.search.limit,
  // </s> counted, is cut instead of an Error naming it. An Error names the line whose prefix is not UTF-8, has special
  // pieces, or is longer than a translation may be.
  std::vector<std::vector<Translation>> translate(std::span<const SourceLine> lines, std::int64_t first_line,
                                                  TranslateOptions options, bool truncate);

  // Of all lines so far: pieces without </s>, and those that the vocabulary lacks.
  std::int64_t pieces() const { return pieces_; }
  std::int64_t unknown_pieces() const { return unknown_; }

 private:
  struct Model;

  TranslationSource source_of(const SourceLine& line, std::int64_t number, const TranslateOptions& options,
                              bool truncate);
  std::vector<std::int32_t> prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const;

  std::vector<std::unique_ptr<Model>> models_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  SearchTokens tokens_;
  std::int64_t pieces_ = 0, unknown_ = 0;
};

}  // namespace etc::translation

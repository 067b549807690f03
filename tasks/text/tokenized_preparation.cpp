#include "tasks/text/tokenized_preparation.h"

#include <string_view>

#include "etc_core/base/error.h"

namespace etc::text {

std::unique_ptr<data::Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const std::string& wanted,
                                                const data::TokenizerOptions& options) {
  auto tokenizer = data::load_tokenizer(vocab, options);
  const std::string_view kind = tokenizer->kind();
  if (kind == "bpe" || kind == "word" || kind == "characters") {
    fail(vocab.string(),
         "expected a WordPiece, SentencePiece (*.model) or byte-level BPE (*.json) vocabulary, got one of kind {}, "
         "which task {} reads",
         kind, kind == "characters" ? "lm" : "translation");
  }
  if (!wanted.empty() && wanted != tokenizer->kind()) {
    fail_usage("etc prepare",
               "tokenizer: expected {}, but {} is a {} vocabulary (*.model is SentencePiece, *.json byte_bpe, others "
               "WordPiece)",
               wanted, vocab.string(), tokenizer->kind());
  }
  return tokenizer;
}

}  // namespace etc::text

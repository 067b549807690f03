#include "data/text/tokenizer.h"

#include "data/text/character_vocab.h"
#include "data/text/sentencepiece.h"
#include "data/text/subword_tokenizer.h"
#include "data/text/wordpiece.h"

namespace etc::data {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const TokenizerOptions& options) {
  if (vocab.extension() == ".model") return load_sentencepiece(vocab, options);
  if (vocab.extension() == ".bpe" || vocab.extension() == ".words") return load_subword_tokenizer(vocab);
  if (vocab.extension() == ".chars") return load_characters(vocab);
  return load_wordpiece(vocab, options.do_lower_case);
}

}  // namespace etc::data

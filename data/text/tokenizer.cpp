#include "data/text/tokenizer.h"

#include "data/text/sentencepiece.h"
#include "data/text/wordpiece.h"

namespace etc::data {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const TokenizerOptions& options) {
  if (vocab.extension() == ".model") return load_sentencepiece(vocab, options);
  return load_wordpiece(vocab, options.do_lower_case);
}

}  // namespace etc::data

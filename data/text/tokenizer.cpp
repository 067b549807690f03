#include "data/text/tokenizer.h"

#include "data/text/byte_bpe.h"
#include "data/text/character_vocab.h"
#include "data/text/sentencepiece.h"
#include "data/text/subword_tokenizer.h"
#include "data/text/wordpiece.h"

namespace etc::data {

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const TokenizerOptions& options) {
  if (vocab.extension() == ".model") return load_sentencepiece(vocab, options);
  if (vocab.extension() == ".json") return std::make_unique<ByteBpe>(vocab);
  if (vocab.extension() == ".bpe" || vocab.extension() == ".words") return load_subword_tokenizer(vocab);
  if (vocab.extension() == ".chars") return load_characters(vocab);
  return load_wordpiece(vocab, options.do_lower_case);
}

std::vector<std::pair<std::string, std::filesystem::path>> vocabulary_files(const Tokenizer& tokenizer,
                                                                            const std::filesystem::path& vocab) {
  const std::string_view kind = tokenizer.kind();
  if (kind == "byte_bpe") return {{"vocab.json", vocab}, {"merges.txt", merges_beside(vocab)}};
  return {{kind == "sentencepiece" ? "vocab.model"
           : kind == "bpe"         ? "vocab.bpe"
           : kind == "word"        ? "vocab.words"
           : kind == "characters"  ? "vocab.chars"
                                   : "vocab.txt",
           vocab}};
}

}  // namespace etc::data

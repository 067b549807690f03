// Tokenizers of published vocabularies, loaded once for all tests of a program: a SentencePiece model takes a tenth of a
// second, and golden files name the same few vocabularies for hundreds of cases.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::test {

// Refers to a tokenizer that others use as well, for owners that want one of their own.
class SharedTokenizer : public data::Tokenizer {
 public:
  explicit SharedTokenizer(std::shared_ptr<const data::Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
    vocab_sha256_ = tokenizer_->vocab_sha256();
  }
  data::Tokens encode(std::string_view utf8) const override { return tokenizer_->encode(utf8); }
  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override {
    tokenizer_->append_ids(utf8, ids);
  }
  void append_word_ids(std::string_view word, std::vector<std::int32_t>& ids) const override {
    tokenizer_->append_word_ids(word, ids);
  }
  std::int32_t piece_id(std::string_view piece) const override { return tokenizer_->piece_id(piece); }
  std::int32_t vocab_size() const override { return tokenizer_->vocab_size(); }
  std::string piece(std::int32_t id) const override { return tokenizer_->piece(id); }
  const char* kind() const override { return tokenizer_->kind(); }
  bool lower_case() const override { return tokenizer_->lower_case(); }

 private:
  std::shared_ptr<const data::Tokenizer> tokenizer_;
};

// For files that do not change while the tests run.
inline std::unique_ptr<data::Tokenizer> shared_tokenizer(const std::filesystem::path& vocab,
                                                         const data::TokenizerOptions& options = {}) {
  using Key = std::tuple<std::filesystem::path, bool, bool, bool>;
  static std::map<Key, std::shared_ptr<const data::Tokenizer>> loaded;
  std::shared_ptr<const data::Tokenizer>& tokenizer =
      loaded[{vocab, options.do_lower_case, options.strip_comma_prefix, options.whole_user_pieces}];
  if (!tokenizer) tokenizer = data::load_tokenizer(vocab, options);
  return std::make_unique<SharedTokenizer>(tokenizer);
}

}  // namespace etc::test

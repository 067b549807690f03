#include "data/text/subword_tokenizer.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "data/text/sha256.h"
#include "data/text/subword_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::int32_t kUnknown = 3;

class SubwordTokenizer final : public Tokenizer {
 public:
  SubwordTokenizer(SubwordVocab vocab, std::string where, std::string sha256)
      : words_(vocab.words), lower_case_(vocab.lower_case), where_(std::move(where)) {
    vocab_sha256_ = std::move(sha256);
    if (vocab.merges) bpe_.emplace(*vocab.merges);
    for (const std::string_view special : kSubwordSpecials) pieces_.emplace_back(special);
    for (auto& [piece, count] : vocab.pieces) {
      ids_.emplace(piece, static_cast<std::int32_t>(pieces_.size()));
      pieces_.push_back(std::move(piece));
    }
  }

  Tokens encode(std::string_view utf8) const override {
    Tokens tokens;
    for_each_piece(utf8, [&](const std::string& piece) {
      tokens.pieces.push_back(piece);
      tokens.ids.push_back(id_of(piece));
    });
    return tokens;
  }

  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override {
    for_each_piece(utf8, [&](const std::string& piece) { ids.push_back(id_of(piece)); });
  }

  std::int32_t piece_id(std::string_view piece) const override {
    for (std::size_t i = 0; i < kSubwordSpecials.size(); ++i) {
      if (piece == kSubwordSpecials[i]) return static_cast<std::int32_t>(i);
    }
    const auto found = ids_.find(piece);
    if (found == ids_.end()) fail(where_, "no piece {}: expected it in the dictionary", std::string(piece));
    return found->second;
  }

  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  std::string piece(std::int32_t id) const override { return pieces_.at(static_cast<std::size_t>(id)); }
  const char* kind() const override { return bpe_ ? "bpe" : "word"; }
  bool lower_case() const override { return lower_case_; }

 private:
  template <typename Visit>
  void for_each_piece(std::string_view utf8, const Visit& visit) const {
    std::vector<std::string> pieces;
    for_each_subword_word(utf8, words_, lower_case_, [&](std::string_view word) {
      pieces.clear();
      bpe_ ? append_pieces(word, *bpe_, pieces) : pieces.push_back(std::string(word));
      for (const std::string& piece : pieces) visit(piece);
    });
  }

  std::int32_t id_of(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? kUnknown : found->second;
  }

  WordRule words_;
  bool lower_case_;
  std::string where_;
  std::optional<Bpe> bpe_;
  std::vector<std::string> pieces_;                                                     // by id
  std::unordered_map<std::string, std::int32_t, StringViewHash, std::equal_to<>> ids_;  // without the specials
};

}  // namespace

std::unique_ptr<Tokenizer> load_subword_tokenizer(const std::filesystem::path& vocab) {
  const std::string text = read_file(vocab);
  return std::make_unique<SubwordTokenizer>(parse_subword_vocab(text, vocab.string()), vocab.string(),
                                            sha256_hex(text));
}

}  // namespace etc::data

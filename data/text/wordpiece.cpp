#include "data/text/wordpiece.h"

#include <mutex>
#include <set>
#include <utility>

#include "data/text/basic_tokenizer.h"
#include "data/text/sha256.h"
#include "data/text/wordpiece_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kLargestVocabulary = std::uint64_t{1} << 28;  // bytes; a larger file is no vocabulary

class WordPiece : public Tokenizer {
 public:
  WordPiece(std::string bytes, const std::string& where, bool lower_case)
      : where_(where), lower_case_(lower_case), vocab_(std::move(bytes), where) {}

  const WordPieceVocab& vocab() const { return vocab_; }
  void set_sha256(std::string hex) { vocab_sha256_ = std::move(hex); }

  Tokens encode(std::string_view utf8) const override {
    Tokens tokens;
    for_each_word(utf8, lower_case_, [&](std::string_view word) {
      if (vocab_.append_ids(word, tokens.ids)) return;
      tokens.unknown_words.emplace_back(static_cast<std::int32_t>(tokens.ids.size()) - 1, word);
    });
    tokens.pieces.reserve(tokens.ids.size());
    for (const std::int32_t id : tokens.ids) tokens.pieces.emplace_back(vocab_.piece(id));
    return tokens;
  }

  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override {
    for_each_word(utf8, lower_case_, [&](std::string_view word) { vocab_.append_ids(word, ids); });
  }

  std::int32_t piece_id(std::string_view piece) const override {
    const std::int32_t id = vocab_.find(piece);
    if (id < 0) fail(where_, "the vocabulary has no piece \"{}\"", piece);
    return id;
  }

  std::int32_t vocab_size() const override { return vocab_.size(); }
  std::string piece(std::int32_t id) const override { return std::string(vocab_.piece(id)); }
  const char* kind() const override { return "wordpiece"; }
  bool lower_case() const override { return lower_case_; }

 private:
  std::string where_;
  bool lower_case_;
  WordPieceVocab vocab_;
};

// Warns once for each file, however often a command loads it.
void warn_of_repeated_lines(const WordPieceVocab& vocab, const std::string& where) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const auto [count, first_line] = vocab.repeated();
  const std::lock_guard lock(mutex);
  if (count == 0 || !told.insert(where).second) return;
  log::warn("{}: {} that repeat{} an earlier one {} no id: from line {} on, ids are below the numbers of lines", where,
            count == 1 ? "1 line" : fmt::format("{} lines", count), count == 1 ? "s" : "", count == 1 ? "has" : "have",
            first_line);
}

}  // namespace

std::unique_ptr<Tokenizer> load_wordpiece(const std::filesystem::path& vocab, bool lower_case) {
  std::string bytes = read_file(vocab, kLargestVocabulary);
  std::string hex = sha256_hex(bytes);
  auto tokenizer = std::make_unique<WordPiece>(std::move(bytes), vocab.string(), lower_case);
  tokenizer->set_sha256(std::move(hex));
  warn_of_repeated_lines(tokenizer->vocab(), vocab.string());
  return tokenizer;
}

}  // namespace etc::data

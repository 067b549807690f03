// Text → vocabulary ids. One interface, five kinds: WordPiece (BERT vocabularies), SentencePiece (unigram, BPE),
// byte-level BPE (RoBERTa, GPT-2), byte-pair pieces or words for translation, and characters.
//
// A tokenizer is immutable after loading and may be used from several threads at once. It adds no special tokens.
// Specification: etc-core 11 (WordPiece, SentencePiece, the digit-comma rule).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace etc::data {

// The result of one call: pieces as the vocabulary spells them ("##ing", "▁the"; unknown text of a SentencePiece model
// keeps its surface form) and their ids.
struct Tokens {
  std::vector<std::string> pieces;
  std::vector<std::int32_t> ids;
  // Details that a piece's spelling does not show, by position in `pieces`, ascending; empty for most texts.
  std::vector<std::pair<std::int32_t, std::string>> unknown_words;  // WordPiece: the word that became "[UNK]"
  std::vector<std::int32_t> re_encoded;  // SentencePiece: pieces re-encoded by the digit-comma rule (not the ",")
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual Tokens encode(std::string_view utf8) const = 0;
  std::vector<std::int32_t> encode_ids(std::string_view utf8) const {
    std::vector<std::int32_t> ids;
    ids.reserve(utf8.size() / 4);  // English text has about one piece per five bytes
    append_ids(utf8, ids);
    return ids;
  }
  // Appends the ids to `ids`, for texts of many words that are cut one by one.
  virtual void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const = 0;

  // Appends the ids of a word that follows another one, when words are cut one by one. A byte-level vocabulary has
  // different pieces for this word than for a text's first word; the other kinds cut both alike.
  virtual void append_word_ids(std::string_view word, std::vector<std::int32_t>& ids) const { append_ids(word, ids); }

  // The id of a piece spelled exactly so. Throws Error naming the piece when the vocabulary lacks it.
  virtual std::int32_t piece_id(std::string_view piece) const = 0;
  virtual std::int32_t vocab_size() const = 0;
  // The spelling of an id, 0 <= id < vocab_size(). Unlike Tokens::pieces it shows unknown text as "<unk>" or "[UNK]".
  virtual std::string piece(std::int32_t id) const = 0;

  // "wordpiece" | "sentencepiece" | "byte_bpe" | "bpe" | "word" | "characters"
  virtual const char* kind() const = 0;
  virtual bool lower_case() const = 0;  // lower-cases the text; never SentencePiece or byte-level BPE

  // 64 hex digits: SHA-256 of the vocabulary file's bytes; several files are concatenated.
  const std::string& vocab_sha256() const { return vocab_sha256_; }

 protected:
  std::string vocab_sha256_;
};

struct TokenizerOptions {
  bool do_lower_case = true;        // WordPiece only
  bool strip_comma_prefix = false;  // SentencePiece: drop the spurious "▁" of the digit-comma rule (etc-core 11.2)
  // SentencePiece: text that spells a user-defined piece ("[CLS]") becomes that piece, as in the library since 0.2.3.
  // false leaves it to the library, and older releases cut it into pieces.
  bool whole_user_pieces = false;
};

// Loads a vocabulary; its file name determines the kind: "*.model" is SentencePiece, "*.json" byte-level BPE with its
// merges in the same folder (byte_bpe.h), "*.bpe" and "*.words" are for translation (subword_vocab.h), "*.chars" has
// characters (character_vocab.h), anything else is WordPiece (one token per line). Throws Error naming the file:
// missing, empty, not UTF-8, no [UNK], damaged model.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const TokenizerOptions& options = {});

// The files of a vocabulary, with their names in a model folder ("vocab.txt", "vocab.model", "vocab.json" and
// "merges.txt", …). The file passed to load_tokenizer is first.
std::vector<std::pair<std::string, std::filesystem::path>> vocabulary_files(const Tokenizer& tokenizer,
                                                                            const std::filesystem::path& vocab);

}  // namespace etc::data

// Text → vocabulary ids. One interface, five kinds: WordPiece (BERT vocabularies), SentencePiece (unigram, BPE),
// byte-level BPE (RoBERTa, GPT-2), the byte-pair pieces or words of a translation, and characters.
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
  // What a piece's spelling does not tell, by its position in `pieces`, ascending; empty for most texts.
  std::vector<std::pair<std::int32_t, std::string>> unknown_words;  // WordPiece: the word that became "[UNK]"
  std::vector<std::int32_t> re_encoded;  // SentencePiece: pieces the digit-comma rule encoded afresh (not the ",")
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual Tokens encode(std::string_view utf8) const = 0;
  std::vector<std::int32_t> encode_ids(std::string_view utf8) const {
    std::vector<std::int32_t> ids;
    ids.reserve(utf8.size() / 4);  // English text has one piece for about five bytes
    append_ids(utf8, ids);
    return ids;
  }
  // The ids behind those that are there: for texts of many words, each cut on its own.
  virtual void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const = 0;

  // The ids of a word that stands behind another one, each word cut on its own. A byte-level vocabulary has other pieces
  // for it than for a text's first word; the others cut both alike.
  virtual void append_word_ids(std::string_view word, std::vector<std::int32_t>& ids) const { append_ids(word, ids); }

  // The id of a piece spelled exactly so. Throws Error naming the piece when the vocabulary lacks it.
  virtual std::int32_t piece_id(std::string_view piece) const = 0;
  virtual std::int32_t vocab_size() const = 0;
  // The spelling of an id, 0 <= id < vocab_size(). Unlike Tokens::pieces it shows unknown text as "<unk>" or "[UNK]".
  virtual std::string piece(std::int32_t id) const = 0;

  // "wordpiece" | "sentencepiece" | "byte_bpe" | "bpe" | "word" | "characters"
  virtual const char* kind() const = 0;
  virtual bool lower_case() const = 0;  // lower-cases the text; never SentencePiece or byte-level BPE

  // 64 hex digits: SHA-256 of the vocabulary file's bytes, of several files one behind the other.
  const std::string& vocab_sha256() const { return vocab_sha256_; }

 protected:
  std::string vocab_sha256_;
};

struct TokenizerOptions {
  bool do_lower_case = true;        // WordPiece only
  bool strip_comma_prefix = false;  // SentencePiece: drop the spurious "▁" of the digit-comma rule (etc-core 11.2)
  // SentencePiece: text that spells a user-defined piece ("[CLS]") is that piece, as the library does it since 0.2.3;
  // false leaves it to the library, and older releases cut it up.
  bool whole_user_pieces = false;
};

// Loads a vocabulary by its name: "*.model" is SentencePiece, "*.json" byte-level BPE with its merges beside it
// (byte_bpe.h), "*.bpe" and "*.words" are those of translations (subword_vocab.h), "*.chars" has characters
// (character_vocab.h), anything else is WordPiece (one token per line). Throws Error naming the file: missing, empty, not
// UTF-8, duplicate entries (ids would shift), no [UNK], damaged model.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& vocab, const TokenizerOptions& options = {});

// The files that a vocabulary consists of, the one it is loaded by first, under the names a model folder has them by:
// "vocab.txt", "vocab.model", "vocab.json" and "merges.txt", …
std::vector<std::pair<std::string, std::filesystem::path>> vocabulary_files(const Tokenizer& tokenizer,
                                                                            const std::filesystem::path& vocab);

}  // namespace etc::data

// Byte-level BPE: the tokenizer of GPT-2 and RoBERTa. A text is cut into words by a pattern; a word's bytes are mapped
// to printable characters (byte_words.h), which are merged in the order in which the merges were learned (bpe.h). There
// are no unknown pieces.
//
//   vocab.json    {"piece": id}: ids from 0 on, and a piece for every byte
//   merges.txt    in the same folder: optionally "#version: …", then one merge per line (two pieces, one blank)
//                 (of NAME-vocab.json: NAME-merges.txt; of GPT-2's encoder.json: vocab.bpe)
//
// A text that spells a special piece ("<s>") is encoded as text; only tasks add special pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/bpe.h"
#include "data/text/tokenizer.h"

namespace etc::data {

class ByteBpe final : public Tokenizer {
 public:
  // Throws Error naming the file, and the line if any: a missing merges.txt, not JSON, ids other than 0, 1, … without
  // gaps, a byte without a piece, a line that is not a merge, a merge whose result is not a piece.
  explicit ByteBpe(const std::filesystem::path& vocab);

  // Invalid UTF-8 is dropped.
  Tokens encode(std::string_view utf8) const override;
  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override;
  // Encodes the word as it would be after a blank, which belongs to the word.
  void append_word_ids(std::string_view word, std::vector<std::int32_t>& ids) const override;

  std::int32_t piece_id(std::string_view piece) const override;
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(pieces_.size()); }
  std::string piece(std::int32_t id) const override { return pieces_.at(static_cast<std::size_t>(id)); }
  const char* kind() const override { return "byte_bpe"; }
  bool lower_case() const override { return false; }

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  void read_pieces(const std::string& text);
  void read_merges(const std::string& text, const std::string& where);
  void find_whole_words();
  std::int32_t find(std::string_view piece) const;  // -1: none
  void append(std::string_view utf8, std::string_view before, std::vector<std::int32_t>& ids) const;

  std::string where_;
  std::vector<std::string> pieces_;  // by id
  std::unordered_map<std::string, std::int32_t, StringViewHash, std::equal_to<>> ids_;
  std::vector<Merge> merges_;
  std::unique_ptr<const Bpe> bpe_;
  std::vector<bool> whole_;  // by id: merging this piece's characters yields it, so that a word equal to it needs no
                             // merging
};

// The merge file that belongs to a vocabulary FILE.json.
std::filesystem::path merges_beside(const std::filesystem::path& vocab);

}  // namespace etc::data

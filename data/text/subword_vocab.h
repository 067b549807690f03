// The vocabulary file for translation: how text is cut into words, how words are cut into pieces, and the list of
// pieces (translation 4).
//
//   #version: 0.2                          codes as subword-nmt writes them, one merge per line; without them words
//   e n</w>                                are pieces
//   …
//   #dictionary words=13a case=mixed       words: 13a or blanks; case: mixed or lower
//   the 5012                               pieces and their counts as fairseq writes them, the specials not among them:
//   er@@ 4107                              ids 0 … 3 are <s>, <pad>, </s>, <unk>, the first line's piece is 4
//
// Codes and dictionary of other programs, joined by a line "#dictionary", form a valid file (words=blanks case=mixed).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text/bpe.h"

namespace etc::data {

inline constexpr std::array<std::string_view, 4> kSubwordSpecials = {"<s>", "<pad>", "</s>", "<unk>"};
inline constexpr std::string_view kPieceGoesOn = "@@";  // after every piece but the last of a word

enum class WordRule { rules_13a, blanks };

struct SubwordVocab {
  WordRule words = WordRule::blanks;
  bool lower_case = false;
  std::optional<std::vector<Merge>> merges;                  // none: words are pieces
  std::vector<std::pair<std::string, std::int64_t>> pieces;  // without the specials
};

// Throws Error "<where>: line <n>: …" on a text that is not UTF-8, another version of codes, a merge that is not two
// symbols, a missing #dictionary line, a piece without a count, a repeated or special piece.
SubwordVocab parse_subword_vocab(std::string_view text, const std::string& where);

std::string subword_vocab_text(const SubwordVocab& vocab);

// Calls visit for every word of a line, cut by the rule and lower-cased where asked.
void for_each_subword_word(std::string_view line, WordRule rule, bool lower_case, const VisitWord& visit);

// A dictionary of the words' pieces by descending count, then by their bytes, padded with "madeupword0000", … so that
// the size with the specials is a multiple of 8. merges: nullptr if words are pieces; then only the first `most` are
// taken (0: all).
std::vector<std::pair<std::string, std::int64_t>> make_dictionary(const WordCounts& words, const Bpe* merges,
                                                                  std::int64_t most = 0);

// The pieces of a word as a dictionary spells them: "lo@@", "wer".
void append_pieces(std::string_view word, const Bpe& merges, std::vector<std::string>& pieces);

// The text of pieces joined by blanks: "@@ " and a trailing "@@" go away.
std::string undo_bpe(std::string_view pieces);

}  // namespace etc::data

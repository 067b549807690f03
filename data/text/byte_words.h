// The words of byte-level BPE: how GPT-2's pattern cuts a text, and the characters that represent bytes (Radford et
// al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text/word_counts.h"

namespace etc::data {

// Calls visit for the consecutive matches of this pattern, which together are the whole text:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// \p{L} and \p{N} are Unicode's categories, \s its property White_Space. The text is valid UTF-8.
void for_each_byte_word(std::string_view utf8, const VisitWord& visit);

// Bytes as printable characters: '!' to '~', U+00A1 to U+00AC and U+00AE to U+00FF represent themselves; the other 68
// bytes are, in order, U+0100 and the characters after it (the blank is U+0120).
const std::string& byte_letter(unsigned char byte);   // as UTF-8
std::string byte_letters(std::string_view bytes);     // of each byte
std::string bytes_of_letters(std::string_view utf8);  // the inverse; other characters are kept

// The pieces as SentencePiece would spell them: "▁" for a blank, and each character in the piece that holds its first
// byte.
std::vector<std::string> sentencepiece_spelling(const std::vector<std::string>& pieces);

// The text of an answer's pieces, without the white space at its ends. A character with missing bytes is left out.
std::string joined_byte_pieces(const std::vector<std::string>& pieces);

}  // namespace etc::data

// From the pieces of an answer back to text for people (task-hotpotqa 5.3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::text {

// SentencePiece: pieces joined, "▁" as a blank, without the first piece's one.
std::string joined_sentencepieces(const std::vector<std::string>& pieces);

// WordPiece: pieces joined by blanks, continuations ("##") to the piece before, "##" removed elsewhere, too.
std::string joined_wordpieces(const std::vector<std::string>& pieces);

// The part of `source` that `tokens`, a text of joined_wordpieces, stands for: the tokens are looked up in the words of
// the source, lower-cased as the vocabulary is, and their place taken back to it, blanks aside. The whole source where
// they are not found or begin or end with a blank, and where lower-casing changed the number of characters (accents
// written as marks of their own, say).
std::string recovered_text(std::string_view tokens, std::string_view source, bool lower_case = true);

// The text of an answer's pieces, which were cut from the words of `source` one by one. Byte-level pieces are its bytes;
// the whole source where they begin or end inside a character.
std::string answer_in_words(const data::Tokenizer& tokenizer, const std::vector<std::string>& pieces,
                            std::string_view source, bool lower_case = true);

}  // namespace etc::text

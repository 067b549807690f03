// Converts the pieces of an answer back to readable text (task-hotpotqa 5.3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::text {

// SentencePiece: pieces joined, "▁" as a blank, without a leading one.
std::string joined_sentencepieces(const std::vector<std::string>& pieces);

// WordPiece: pieces joined by blanks, continuations ("##") to the previous piece; "##" elsewhere is removed, too.
std::string joined_wordpieces(const std::vector<std::string>& pieces);

// The part of `source` that corresponds to `tokens`, a text from joined_wordpieces: the tokens are searched in the
// words of the source, lower-cased as for the vocabulary, and the position is mapped back, ignoring blanks. Returns the
// whole source if they are not found or begin or end with a blank, or if lower-casing changed the number of characters
// (for example with accents as separate combining marks).
std::string recovered_text(std::string_view tokens, std::string_view source, bool lower_case = true);

// The text of an answer's pieces, which were made from the words of `source` one by one. Byte-level pieces are
// converted to their bytes; the whole source is returned if they begin or end inside a character.
std::string answer_in_words(const data::Tokenizer& tokenizer, const std::vector<std::string>& pieces,
                            std::string_view source, bool lower_case = true);

}  // namespace etc::text

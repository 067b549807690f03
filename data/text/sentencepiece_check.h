// Checks of an untrusted model file that the SentencePiece library does not make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etc::data {

// Checks the normaliser's character map of a serialized SentencePiece model. The library follows this double-array trie
// without bounds checks, and only while encoding: a damaged model loads, and a later text makes the library read out of
// bounds. After this check no text can.
//
// Throws Error("<where>: …") when the file is not a protocol buffer, an index of a reachable trie node or of a
// replacement is outside the map, a replacement is not UTF-8 or longer than 1 KiB, or more than 32 rules are prefixes
// of each other (the library's fixed array). Cost: one pass over the reachable nodes, milliseconds.
void check_sentencepiece_bytes(std::string_view model, const std::string& where);

// The pieces of type USER_DEFINED (for example "[CLS]"), in the file's order. Throws Error as above.
std::vector<std::string> user_defined_pieces(std::string_view model, const std::string& where);

}  // namespace etc::data

// The language data of the Punkt sentence splitter, read from the four files of NLTK's "punkt_tab" packages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace etc::data {

struct StringViewHash {  // allows look-up by string_view
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using StringSet = std::unordered_set<std::string, StringViewHash, std::equal_to<>>;

// Bits of the orthographic context: whether a type was seen with an initial capital or small letter, by position.
namespace ortho {
inline constexpr int kInitialUpper = 2;
inline constexpr int kMiddleUpper = 4;
inline constexpr int kInitialLower = 16;
inline constexpr int kAnyUpper = 2 | 4 | 8;     // sentence-initial, mid-sentence, unknown position
inline constexpr int kAnyLower = 16 | 32 | 64;  // the same
}  // namespace ortho

struct PunktTables {
  StringSet abbreviations;  // lower case, without the final period
  StringSet collocations;   // "type<tab>type": no sentence ends between the two
  StringSet starters;       // types that often start a sentence
  std::unordered_map<std::string, int, StringViewHash, std::equal_to<>> contexts;  // type → bits of ortho
  std::string sha256;  // over the bytes of the four files, in the order abbreviations, collocations, starters, contexts
};

// Reads abbrev_types.txt, collocations.tab, sent_starters.txt and ortho_context.tab from a folder. Lines are taken as
// they are: the abbreviation ". . " ends in a blank. Tables learned from little text may be empty, except for the
// last. Throws Error naming file and line: a file missing, ortho_context.tab empty, not UTF-8, a carriage return at a
// line's end, an empty line, an entry twice, a wrong number of columns, bits beyond 127.
PunktTables read_punkt_tables(const std::filesystem::path& folder);

}  // namespace etc::data

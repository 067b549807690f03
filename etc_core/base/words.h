// Words and texts in messages: suggestions for a mistyped word, lists of alternatives, shortened texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace etc {

// The candidate nearest to `word` by edit distance, or empty when none is near: at most a third of the letters differ,
// or two of them; one, if the word has at most three.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// "a", "a or b", "a, b or c"
std::string alternatives(const std::vector<std::string>& words);

// The text itself if it has at most `bytes` bytes; else its longest prefix of whole UTF-8 characters within `bytes`
// bytes, and "…".
std::string shortened(std::string_view text, std::size_t bytes);

// " (did you mean X?)" or "".
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace etc

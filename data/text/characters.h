// Positions in a text counted in Unicode characters (code points) instead of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "etc_core/base/utf8.h"

namespace etc::data {

// Number of characters of a valid UTF-8 text: counts the bytes that are not continuation bytes. Cost: one pass.
inline std::int64_t character_count(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return !continues_character(c); });
}

// The byte where character `index` begins; the text's size if the text has fewer characters. index >= 0.
inline std::size_t byte_of_character(std::string_view utf8, std::int64_t index) {
  std::size_t at = 0;
  for (; at < utf8.size(); ++at) {
    if (!continues_character(utf8[at]) && index-- == 0) break;
  }
  return at;
}

}  // namespace etc::data

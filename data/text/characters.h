// Places in a text as people and other languages count them: in Unicode characters (code points), not in bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace etc::data {

// Characters of a valid UTF-8 text: the bytes that do not continue one. Cost: one pass.
inline std::int64_t character_count(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// The byte where character `index` begins; the text's size where there are not so many. index >= 0.
inline std::size_t byte_of_character(std::string_view utf8, std::int64_t index) {
  std::size_t at = 0;
  for (; at < utf8.size(); ++at) {
    if ((static_cast<unsigned char>(utf8[at]) & 0xC0) != 0x80 && index-- == 0) break;
  }
  return at;
}

}  // namespace etc::data

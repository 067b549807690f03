// Letters of ASCII, independent of the locale.
#pragma once

#include <string>

namespace etc {

// The text with A … Z as a … z; all other bytes unchanged.
inline std::string lower_ascii(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

}  // namespace etc

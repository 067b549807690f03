// Whole numbers with separators.
#pragma once

#include <cstdint>
#include <string>

namespace etc {

// 1234567 as 1,234,567
inline std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace etc

#include "etc_core/base/shape.h"

namespace etc {

std::string shape_text(std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  std::string text = "[";
  for (const auto& [letter, size] : sizes) {
    if (text.size() > 1) text += ", ";
    text += letter;
    text += '=';
    text += std::to_string(size);
  }
  return text + "]";
}

std::string shape_text(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (std::int64_t size : sizes) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::int64_t element_count(std::span<const std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

}  // namespace etc

// The Unicode questions the project asks, answered by ICU behind this door.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace etc::data {

std::string unicode_version();  // of ICU's tables, "15.0"

// Byte offset of the first byte that is not well-formed UTF-8, or nullopt.
std::optional<std::size_t> invalid_utf8(std::string_view bytes);

std::u32string to_code_points(std::string_view utf8);  // invalid sequences are dropped
std::string to_utf8(std::u32string_view code_points);

// Python's str.lower() on a whole string: full mappings, final sigma.
std::string lower_case(std::string_view utf8);

// Python's str.strip(): Unicode white space at both ends (what str.isspace accepts).
std::string_view strip(std::string_view utf8);
bool is_space(char32_t c);  // Python's str.isspace for one character

}  // namespace etc::data

// Parses and prints memory sizes with a unit.
#pragma once

#include <cstdint>
#include <string>

namespace etc {

// "8GB", "1.5 GB", "500MB", "8GiB", "4096": bytes. KB, MB, GB, TB are powers of 1000, as in all that the program
// prints; KiB … TiB of 1024; letters of either case. Throws UsageError "<where>: expected a size …" on anything else
// and on less than one byte.
std::int64_t parse_byte_size(const std::string& text, const std::string& where);

// "2.50 GB", "16.4 MB".
std::string byte_size_text(std::int64_t bytes);

}  // namespace etc

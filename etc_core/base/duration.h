// Lengths of time as people write them.
#pragma once

#include <string>

namespace etc {

// "90s", "15min", "1.5h", "1d", "200ms": seconds. Throws UsageError "<where>: expected a time …" on anything else and on
// nothing above 0.
double parse_duration(const std::string& text, const std::string& where);

}  // namespace etc

// Parses durations with a unit.
#pragma once

#include <string>

namespace etc {

// The seconds of "90s", "15min", "1.5h", "1d", "200ms". Throws UsageError "<where>: expected a time …" on anything else
// and on values that are not above 0.
double parse_duration(const std::string& text, const std::string& where);

}  // namespace etc

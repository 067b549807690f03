#include "etc_core/base/duration.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "etc_core/base/error.h"

namespace etc {

double parse_duration(const std::string& text, const std::string& where) {
  double number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, seconds] :
       {std::pair<std::string_view, double>{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86'400}}) {
    if (error == std::errc() && unit == name && number > 0 && std::isfinite(number)) return number * seconds;
  }
  fail_usage(where, "expected a time such as 90s, 15min or 2h, got \"{}\"", text);
}

}  // namespace etc

#include "etc_core/base/byte_size.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "etc_core/base/ascii.h"
#include "etc_core/base/error.h"

namespace etc {

namespace {

// The bytes of a unit; 0: unknown unit.
double unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const std::size_t power = std::string_view("kmgt").find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest != "b" && rest != "ib") return 0;
  return std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

}  // namespace

std::int64_t parse_byte_size(const std::string& text, const std::string& where) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit = lower_ascii({end, text.data() + text.size()});
  std::erase(unit, ' ');
  const double bytes = error == std::errc() ? number * unit_bytes(unit) : 0;
  if (!(bytes >= 1 && bytes < 0x1p62)) fail_usage(where, "expected a size such as 8GB or 500MB, got \"{}\"", text);
  return static_cast<std::int64_t>(bytes);
}

std::string byte_size_text(std::int64_t bytes) {
  constexpr double kGigabyte = 1e9, kMegabyte = 1e6;
  const auto size = static_cast<double>(bytes);
  return size >= kGigabyte ? fmt::format("{:.2f} GB", size / kGigabyte) : fmt::format("{:.1f} MB", size / kMegabyte);
}

}  // namespace etc

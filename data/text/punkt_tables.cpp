#include "data/text/punkt_tables.h"

#include <algorithm>
#include <charconv>

#include "data/text/sha256.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kLargestTable = std::uint64_t{1} << 28;  // bytes; the English tables have 240,000

// Calls visit(line, fail_here) for every line of a table; fail_here(what) names file and line.
template <typename Visit>
void for_each_line(const std::filesystem::path& path, bool may_be_empty, Sha256& hash, Visit&& visit) {
  const std::string bytes = read_file(path, kLargestTable);
  const std::string where = path.string();
  hash.update(bytes);
  if (bytes.empty() && !may_be_empty) fail(where, "the Punkt table is empty");
  if (const auto at = invalid_utf8(bytes)) fail(where, "byte {} is not valid UTF-8", *at);
  const std::string_view text = bytes;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    const auto fail_here = [&](std::string_view what) { fail(where, "line {}: {}", number, what); };
    if (line.empty()) fail_here("is empty");
    if (line.back() == '\r') fail_here("ends in a carriage return: expected line feeds alone");
    visit(line, fail_here);
    begin = end + 1;
  }
}

void read_set(const std::filesystem::path& path, Sha256& hash, std::ptrdiff_t tabs, StringSet& set) {
  for_each_line(path, true, hash, [&](std::string_view line, const auto& fail_here) {
    if (const auto found = std::count(line.begin(), line.end(), '\t'); found != tabs) {
      fail_here(fmt::format("expected {} columns with tabs between, got {}", tabs + 1, found + 1));
    }
    if (!set.emplace(line).second) fail_here(fmt::format("repeats the entry \"{}\"", line));
  });
}

}  // namespace

PunktTables read_punkt_tables(const std::filesystem::path& folder) {
  PunktTables tables;
  Sha256 hash;
  read_set(folder / "abbrev_types.txt", hash, 0, tables.abbreviations);
  read_set(folder / "collocations.tab", hash, 1, tables.collocations);
  read_set(folder / "sent_starters.txt", hash, 0, tables.starters);
  for_each_line(folder / "ortho_context.tab", false, hash, [&](std::string_view line, const auto& fail_here) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) fail_here("expected a type, a tab and a number");
    const std::string_view digits = line.substr(tab + 1);
    int bits = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || end != digits.data() + digits.size() || bits < 0 || bits > 127) {
      fail_here(fmt::format("expected a number from 0 to 127 after the tab, got \"{}\"", digits));
    }
    if (!tables.contexts.emplace(line.substr(0, tab), bits).second) {
      fail_here(fmt::format("repeats the type \"{}\"", line.substr(0, tab)));
    }
  });
  tables.sha256 = hash.hex();
  return tables;
}

}  // namespace etc::data

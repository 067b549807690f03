// Reads a JSON list of objects that all have the same few members into columns, directly from the parser. Building a
// JSON value per object would cost ten times the parsing (a page of OpenKP has hundreds of elements of 20 numbers, one
// of Natural Questions thousands of tokens).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace etc::data {

// What every object of the list must have: these members, each once, and no other.
struct FlatMembers {
  std::vector<std::string> texts;
  std::vector<std::string> integers;                        // of 64 bits, signed
  std::vector<std::pair<std::string, std::size_t>> floats;  // lists of this many numbers with a point or exponent
  std::vector<std::string> flags = {};                      // true or false
};

// Lists that are members of a record, by the member's name.
using FlatLists = std::map<std::string, FlatMembers, std::less<>>;

// Columns in the order of FlatMembers.
struct FlatList {
  std::size_t rows = 0;
  std::vector<std::vector<std::string>> texts;      // [member][row]
  std::vector<std::vector<std::int64_t>> integers;  // [member][row]
  std::vector<std::vector<double>> floats;          // [member][row · size]
  std::vector<std::vector<bool>> flags;             // [member][row]
};

// nullopt unless the text is JSON in UTF-8 and a list of this form; parse_record reads any other text and reports
// faults. Throws std::bad_alloc when memory does not suffice. Thread-safe. Cost: one pass.
std::optional<FlatList> read_flat_list(std::string_view text, const FlatMembers& members);

}  // namespace etc::data

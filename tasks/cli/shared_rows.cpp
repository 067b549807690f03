#include "tasks/cli/shared_rows.h"

#include <cstring>

#include "etc_core/base/error.h"

namespace etc::cli {

namespace {

// The kinds of lists there are, each a run of equal elements.
enum class Kind : char { text, integers, floats };

template <typename List>
void append_list(std::string& bytes, Kind kind, const List& list) {
  const std::int64_t size = std::ssize(list);
  bytes.push_back(static_cast<char>(kind));
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  if (size > 0) bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]);
}

template <typename List>
List take_list(const std::string& bytes, std::size_t& at) {
  std::int64_t size = 0;
  std::memcpy(&size, bytes.data() + at, sizeof size);
  at += sizeof size;
  List list(static_cast<std::size_t>(size), {});
  if (size > 0) std::memcpy(list.data(), bytes.data() + at, list.size() * sizeof list[0]);
  at += list.size() * sizeof list[0];
  return list;
}

}  // namespace

void append_row(std::string& bytes, const data::Example& row) {
  bytes.push_back(static_cast<char>(row.size()));
  for (const auto& [name, value] : row) {
    append_list(bytes, Kind::text, name);
    if (const auto* text = std::get_if<std::string>(&value)) {
      append_list(bytes, Kind::text, *text);
    } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
      append_list(bytes, Kind::integers, *integers);
    } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
      append_list(bytes, Kind::floats, *floats);
    } else {
      fail("encode", "feature {} is of a kind that rows of states do not have", name);
    }
  }
}

data::Example take_row(const std::string& bytes, std::size_t& at) {
  data::Example row;
  for (int left = static_cast<unsigned char>(bytes[at++]); left > 0; --left) {
    ++at;  // a name is a text
    data::FeatureValue& value = row[take_list<std::string>(bytes, at)];
    switch (static_cast<Kind>(bytes[at++])) {
      case Kind::text:
        value = take_list<std::string>(bytes, at);
        break;
      case Kind::integers:
        value = take_list<std::vector<std::int64_t>>(bytes, at);
        break;
      case Kind::floats:
        value = take_list<std::vector<float>>(bytes, at);
        break;
    }
  }
  return row;
}

}  // namespace etc::cli

#include "data/text/document_blocks.h"

#include <array>
#include <charconv>

#include "data/text/unicode.h"

namespace etc::data {

namespace {

// The common entities; others stay as text.
struct Entity {
  std::string_view name;
  char32_t character;
};
constexpr std::array kEntities = {
    Entity{"amp", '&'},       Entity{"lt", '<'},       Entity{"gt", '>'},       Entity{"quot", '"'},
    Entity{"apos", '\''},     Entity{"nbsp", 0xA0},    Entity{"ndash", 0x2013}, Entity{"mdash", 0x2014},
    Entity{"lsquo", 0x2018},  Entity{"rsquo", 0x2019}, Entity{"ldquo", 0x201C}, Entity{"rdquo", 0x201D},
    Entity{"hellip", 0x2026}, Entity{"bull", 0x2022},  Entity{"middot", 0xB7},  Entity{"copy", 0xA9},
    Entity{"reg", 0xAE},      Entity{"trade", 0x2122}, Entity{"deg", 0xB0},     Entity{"euro", 0x20AC},
    Entity{"pound", 0xA3},    Entity{"sect", 0xA7},    Entity{"laquo", 0xAB},   Entity{"raquo", 0xBB},
    Entity{"times", 0xD7},    Entity{"minus", 0x2212}, Entity{"shy", 0xAD},     Entity{"thinsp", 0x2009},
    Entity{"ensp", 0x2002},   Entity{"emsp", 0x2003},  Entity{"auml", 0xE4},    Entity{"ouml", 0xF6},
    Entity{"uuml", 0xFC},     Entity{"Auml", 0xC4},    Entity{"Ouml", 0xD6},    Entity{"Uuml", 0xDC},
    Entity{"szlig", 0xDF},    Entity{"eacute", 0xE9},  Entity{"egrave", 0xE8},  Entity{"agrave", 0xE0},
    Entity{"aacute", 0xE1},   Entity{"iacute", 0xED},  Entity{"oacute", 0xF3},  Entity{"uacute", 0xFA},
    Entity{"ntilde", 0xF1},   Entity{"ccedil", 0xE7},  Entity{"ecirc", 0xEA},   Entity{"ocirc", 0xF4},
    Entity{"frac12", 0xBD},   Entity{"sup2", 0xB2},    Entity{"prime", 0x2032}, Entity{"rarr", 0x2192},
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// 0: none.
char32_t numbered(std::string_view digits) {
  const int base = digits.starts_with('x') || digits.starts_with('X') ? 16 : 10;
  if (base == 16) digits.remove_prefix(1);
  std::uint32_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool whole = error == std::errc() && stop == digits.data() + digits.size() && !digits.empty();
  const bool character = value > 0 && value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF);
  return whole && character ? static_cast<char32_t>(value) : 0;
}

char32_t spelled(std::string_view name) {
  if (name.starts_with('#')) return numbered(name.substr(1));
  for (const Entity& entity : kEntities) {
    if (entity.name == name) return entity.character;
  }
  return 0;
}

}  // namespace

void BlockBuilder::add(std::string_view text, std::size_t place) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (is_space(c)) {
      add_blank(place + begin);
      continue;
    }
    for (std::size_t i = begin; i < at; ++i) {
      const auto byte = static_cast<std::int64_t>(place + i);
      append(text.substr(i, 1), {byte, byte + 1});
    }
  }
}

void BlockBuilder::add_for(std::string_view text, std::size_t place, std::size_t end) {
  std::size_t at = 0;
  if (is_space(next_code_point(text, at))) return add_blank(place);
  for (std::size_t i = 0; i < text.size(); ++i) {
    append(text.substr(i, 1), {static_cast<std::int64_t>(place), static_cast<std::int64_t>(end)});
  }
}

void BlockBuilder::add_blank(std::size_t place) {
  if (blank_ || block_.text.empty()) return;
  blank_ = true;
  blank_place_ = {static_cast<std::int64_t>(place), static_cast<std::int64_t>(place)};
}

void BlockBuilder::append(std::string_view bytes, ByteSpan place) {
  if (blank_) {
    block_.text += ' ';
    block_.places.push_back({blank_place_.begin, place.begin});
    blank_ = false;
  }
  block_.text += bytes;
  block_.places.push_back(place);
}

void BlockBuilder::end_block(TextBlock::Kind kind) {
  blank_ = false;
  if (block_.text.empty()) return;
  block_.kind = kind;
  blocks_.push_back(std::move(block_));
  block_ = {};
}

std::pair<std::string, std::size_t> entity_at(std::string_view document, std::size_t at) {
  constexpr std::size_t kLongest = 12;
  const std::size_t end = document.substr(at, kLongest).find(';');
  if (end == std::string_view::npos || end < 2) return {"", at + 1};
  const char32_t character = spelled(document.substr(at + 1, end - 1));
  std::string text;
  if (character != 0) append_utf8(text, character);
  return {text, at + end + 1};
}

bool tag_begins(std::string_view document, std::size_t at) {
  if (at + 1 >= document.size() || document[at] != '<') return false;
  const char next = document[at + 1];
  if (next == '/' || next == '!' || next == '?') return at + 2 < document.size() && document[at + 2] != ' ';
  return is_letter(next);
}

}  // namespace etc::data

// One raw OpenKP page, read and checked, without a tokenizer (task-openkp 1.2, 1.3, 2.1, 9).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/json_record.h"
#include "tasks/openkp/metrics.h"
#include "tasks/openkp/prepare_config.h"

namespace etc::openkp {

// The fields between single U+0020; an empty text is one empty field.
std::vector<std::string_view> words_of(std::string_view text);
template <typename Visit>
void for_each_word_of(std::string_view text, const Visit& visit) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ' ') continue;
    visit(text.substr(begin, at - begin));
    begin = at + 1;
  }
  visit(text.substr(begin));
}
std::int64_t word_count(std::string_view text);

// The layout of an element or of its parent, as given in the data set.
struct Box {
  float x = 0, y = 0, width = 0, height = 0;  // pixels
  double font_size = 0;
  bool block = false, inlined = false, heading = false, leaf = false, bold = false;
};

struct Element {
  std::string text;
  Box own, parent;
};

// Class of a font size, 0 … 23: pixels rounded half to even, then in steps that widen with the size (task-openkp 2.7).
std::int64_t font_id(double size);

struct Page {
  std::string url;
  std::string text;
  std::vector<Element> elements;
  std::optional<std::vector<Phrase>> key_phrases;  // raw
};

// The members of a record that are read.
inline constexpr std::initializer_list<const char*> kRecordMembers = {"url", "text", "VDOM", "KeyPhrases"};

// Reads the fields and reports all their faults. When a fault rejects the record, the result holds the readable fields, so
// that further checks can still run. raw.value must be an object.
Page read_page(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults);

}  // namespace etc::openkp

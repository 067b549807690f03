#include "data/readers/member_text.h"

#include <simdjson.h>

#include <new>

#include "data/readers/kept_parser.h"

namespace etc::data {

std::optional<std::string> member_text(RecordSlice& slice, std::string_view name) {
  namespace ondemand = simdjson::ondemand;
  static_assert(kTextPadding >= simdjson::SIMDJSON_PADDING);
  std::string& text = slice.text;
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  const KeptParser<ondemand::parser> parser;
  ondemand::document document;
  ondemand::object record;
  const auto error = parser->iterate(text.data(), text.size(), text.capacity()).get(document);
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  if (error || document.get_object().get(record)) return std::nullopt;
  std::optional<std::string_view> found;
  for (auto member : record) {
    std::string_view key, value;
    if (member.unescaped_key().get(key)) return std::nullopt;
    if (key != name) continue;
    if (member.value().get_string().get(value)) return std::nullopt;
    found = value;
  }
  if (!found) return std::nullopt;
  return std::string(*found);
}

}  // namespace etc::data

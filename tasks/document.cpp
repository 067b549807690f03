#include "tasks/document.h"

#include "data/text/characters.h"
#include "etc_core/base/json.h"

namespace etc {

Json OwnDocument::place(data::ByteSpan bytes) const {
  const auto begin = static_cast<std::size_t>(bytes.begin), end = static_cast<std::size_t>(bytes.end);
  const std::int64_t start = data::character_count(text.substr(0, begin));
  return {{"start", start}, {"end", start + data::character_count(text.substr(begin, end - begin))}};
}

Json OwnDocument::place(std::size_t block, std::size_t begin, std::size_t end) const {
  Json found = place(data::place_of(blocks[block], begin, end));
  found["text"] = blocks[block].text.substr(begin, end - begin);
  return found;
}

}  // namespace etc

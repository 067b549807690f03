// Assembles a document's blocks of text; shared by the readers of all forms (document.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text/document.h"

namespace etc::data {

// Collects the text of successive blocks; white space becomes single blanks between words.
class BlockBuilder {
 public:
  // Appends text of the document that begins at byte `place`.
  void add(std::string_view text, std::size_t place);
  // Appends text that replaces the document's bytes [place, end): the character of an entity.
  void add_for(std::string_view text, std::size_t place, std::size_t end);
  // Notes white space, or a boundary between two pieces of text, at `place`.
  void add_blank(std::size_t place);

  const std::string& text() const { return block_.text; }
  void end_block(TextBlock::Kind kind);  // no effect if the block is empty
  std::vector<TextBlock> take() { return std::move(blocks_); }

 private:
  void append(std::string_view bytes, ByteSpan place);

  std::vector<TextBlock> blocks_;
  TextBlock block_;
  bool blank_ = false;  // a blank is due before the next text
  ByteSpan blank_place_;
};

// Calls visit(first byte, line without its end) for every line; ends are LF and CR LF.
template <typename Visit>
void for_each_document_line(std::string_view document, const Visit& visit) {
  for (std::size_t begin = 0; begin < document.size();) {
    const std::size_t end = std::min(document.find('\n', begin), document.size());
    std::string_view line = document.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(begin, line);
    begin = end + 1;
  }
}

// The character of the entity at byte `at` ('&') and the byte after the entity; "" if it is not a known entity.
std::pair<std::string, std::size_t> entity_at(std::string_view document, std::size_t at);

// Whether an HTML tag, comment or declaration begins at byte `at`, as opposed to a plain '<'.
bool tag_begins(std::string_view document, std::size_t at);

std::vector<TextBlock> read_html(std::string_view document);
std::vector<TextBlock> read_markdown(std::string_view document);

}  // namespace etc::data

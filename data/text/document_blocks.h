// How blocks of text are put together from a document: what its forms have in common (document.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text/document.h"

namespace etc::data {

// Collects the text of one block after the other; white space becomes single blanks between words.
class BlockBuilder {
 public:
  // Text of the document that begins at byte `place`.
  void add(std::string_view text, std::size_t place);
  // Text that stands for the document's bytes [place, end): a character that an entity spells.
  void add_for(std::string_view text, std::size_t place, std::size_t end);
  // White space that the document has at `place`, or a border between two pieces of text there.
  void add_blank(std::size_t place);

  const std::string& text() const { return block_.text; }
  void end_block(TextBlock::Kind kind);  // nothing where there is no text
  std::vector<TextBlock> take() { return std::move(blocks_); }

 private:
  void append(std::string_view bytes, ByteSpan place);

  std::vector<TextBlock> blocks_;
  TextBlock block_;
  bool blank_ = false;  // white space before what comes next
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

// The character that an entity at byte `at` ('&') spells and the byte behind it; "" where there is none that is known.
std::pair<std::string, std::size_t> entity_at(std::string_view document, std::size_t at);

// Whether a tag, comment or declaration of HTML begins at byte `at`: a '<' that is more than a sign.
bool tag_begins(std::string_view document, std::size_t at);

std::vector<TextBlock> read_html(std::string_view document);
std::vector<TextBlock> read_markdown(std::string_view document);

}  // namespace etc::data

// A user's document (plain text, Markdown or HTML) → its blocks of text, every byte with its place in the document.
//
// Keeps reading order and text, not layout. The enumerators below say what a block is in each form, and what is left
// out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/sentence_splitter.h"

namespace etc::data {

enum class DocumentForm {
  plain,     // paragraphs between empty lines; a short single line that ends no sentence is a heading
  markdown,  // headings, paragraphs, list items, table rows, code; drops emphasis marks, link addresses and HTML tags
  html,      // the same by tags; drops scripts, styles and comments, decodes entities
};

// The form by the file extension (.md, .markdown, .html, .htm, .xhtml), else by the text's beginning (<!doctype html,
// <html).
DocumentForm form_of(const std::filesystem::path& name, std::string_view document);

struct TextBlock {
  enum class Kind { heading, paragraph, list_item, table_row };
  Kind kind = Kind::paragraph;
  std::string text;              // UTF-8, white space as single blanks, none at the ends; never empty
  std::vector<ByteSpan> places;  // [bytes of text] the document's bytes that each byte represents
};

// The blocks of a valid UTF-8 document in reading order; a heading at its end is a paragraph, and a byte order mark at its
// beginning is no text. Cost: one pass.
std::vector<TextBlock> read_blocks(std::string_view document, DocumentForm form);

// The document's bytes that bytes [begin, end) of a block's text represent; begin < end.
ByteSpan place_of(const TextBlock& block, std::size_t begin, std::size_t end);

// Throws Error "<where>: …" if the document cannot be read as text: it is empty or only white space, has zero bytes (a
// binary file), or is not UTF-8. The message says which, and what to do.
void require_text(std::string_view document, const std::string& where);

}  // namespace etc::data

// A person's document, plain text, Markdown or HTML → its blocks of text, every byte with its place in the document.
//
// Reading order and text are what counts, not layout: this is no browser. What is a block, and what is left out, stands
// with each form below.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/sentence_splitter.h"

namespace etc::data {

enum class DocumentForm {
  plain,     // paragraphs between empty lines; a short line alone that ends no sentence is a heading
  markdown,  // headings, paragraphs, list items, table rows, code; marks of emphasis, links' addresses and HTML tags go
  html,      // the same by tags; scripts, styles and comments go, entities become characters
};

// By the name's ending (.md, .markdown, .html, .htm, .xhtml), else by how the text begins (<!doctype html, <html).
DocumentForm form_of(const std::filesystem::path& name, std::string_view document);

struct TextBlock {
  enum class Kind { heading, paragraph, list_item, table_row };
  Kind kind = Kind::paragraph;
  std::string text;              // UTF-8, white space as single blanks, none at the ends; never empty
  std::vector<ByteSpan> places;  // [bytes of text] the document's bytes that each stands for
};

// The blocks of a valid UTF-8 document in reading order; a heading at its end is a paragraph. Cost: one pass.
std::vector<TextBlock> read_blocks(std::string_view document, DocumentForm form);

// The document's bytes behind bytes [begin, end) of a block's text; begin < end.
ByteSpan place_of(const TextBlock& block, std::size_t begin, std::size_t end);

// Throws Error "<where>: …" unless the document can be read as text: empty, white space alone, bytes U+0000 (a binary
// file), no UTF-8; it says which, and what to do.
void require_text(std::string_view document, const std::string& where);

}  // namespace etc::data

#include "data/text/document.h"

#include <algorithm>

#include "data/text/characters.h"
#include "data/text/document_blocks.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data {

namespace {

constexpr std::int64_t kLongestHeading = 100;  // characters, of plain text

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

// The document without a byte order mark at its beginning.
std::string_view without_mark(std::string_view document) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return document.starts_with(kMark) ? document.substr(kMark.size()) : document;
}

bool looks_like_heading(std::string_view text) {
  if (character_count(text) > kLongestHeading) return false;
  constexpr std::string_view kEnds = ".?!:;,";
  return kEnds.find(text.back()) == std::string_view::npos;
}

// Paragraphs are separated by lines of white space.
std::vector<TextBlock> read_plain(std::string_view document) {
  BlockBuilder builder;
  std::int64_t lines = 0;  // of the current paragraph
  const auto end = [&] {
    builder.end_block(lines == 1 && looks_like_heading(builder.text()) ? TextBlock::Kind::heading
                                                                       : TextBlock::Kind::paragraph);
    lines = 0;
  };
  for_each_document_line(document, [&](std::size_t begin, std::string_view line) {
    if (strip(line).empty()) {
      if (lines > 0) end();
      return;
    }
    builder.add(line, begin);
    builder.add_blank(begin + line.size());
    ++lines;
  });
  if (lines > 0) end();
  return builder.take();
}

}  // namespace

DocumentForm form_of(const std::filesystem::path& name, std::string_view document) {
  const std::string ending = lower_case(name.extension().string());
  if (ending == ".md" || ending == ".markdown") return DocumentForm::markdown;
  if (ending == ".html" || ending == ".htm" || ending == ".xhtml") return DocumentForm::html;
  const std::string_view text = strip(without_mark(document));
  const bool html = starts_with_word(text, "<!doctype html") || starts_with_word(text, "<html");
  return html ? DocumentForm::html : DocumentForm::plain;
}

std::vector<TextBlock> read_blocks(std::string_view document, DocumentForm form) {
  const std::string_view text = without_mark(document);
  std::vector<TextBlock> blocks = form == DocumentForm::html       ? read_html(text)
                                  : form == DocumentForm::markdown ? read_markdown(text)
                                                                   : read_plain(text);
  if (const std::int64_t mark = std::ssize(document) - std::ssize(text); mark > 0) {
    for (TextBlock& block : blocks) {
      for (ByteSpan& place : block.places) place = {place.begin + mark, place.end + mark};
    }
  }
  // A heading with nothing after it is treated as content.
  if (!blocks.empty() && blocks.back().kind == TextBlock::Kind::heading)
    blocks.back().kind = TextBlock::Kind::paragraph;
  return blocks;
}

ByteSpan place_of(const TextBlock& block, std::size_t begin, std::size_t end) {
  return {block.places[begin].begin, block.places[end - 1].end};
}

void require_text(std::string_view document, const std::string& where) {
  if (document.empty()) fail(where, "the document is empty");
  for (const std::string_view mark : {"\xff\xfe", "\xfe\xff"}) {
    if (document.starts_with(mark)) fail(where, "the text is UTF-16: expected UTF-8 (iconv -f utf-16 -t utf-8)");
  }
  if (const std::size_t at = document.find('\0'); at != std::string_view::npos) {
    fail(where, "byte {} is zero: expected text, Markdown or HTML, got a binary file", at);
  }
  if (const auto at = invalid_utf8(document)) {
    fail(where, "byte {} is not valid UTF-8 (convert the document first: iconv -t utf-8)", *at);
  }
  if (strip(document).empty()) fail(where, "the document holds white space alone");
}

}  // namespace etc::data

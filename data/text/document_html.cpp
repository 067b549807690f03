#include <algorithm>
#include <array>
#include <utility>

#include "data/text/document_blocks.h"
#include "data/text/unicode.h"

namespace etc::data {

namespace {

using Kind = TextBlock::Kind;

constexpr std::array<std::string_view, 8> kSkipped = {"script",   "style", "template", "noscript",
                                                      "textarea", "svg",   "select",   "iframe"};
constexpr std::array<std::string_view, 7> kHeadings = {"h1", "h2", "h3", "h4", "h5", "h6", "title"};
constexpr std::array<std::string_view, 33> kBlocks = {
    "address", "article", "aside",   "blockquote", "body",     "caption",    "center", "dd",     "details",
    "dialog",  "div",     "dl",      "dt",         "fieldset", "figcaption", "figure", "footer", "form",
    "head",    "header",  "hr",      "html",       "li",       "main",       "nav",    "ol",     "p",
    "pre",     "section", "summary", "table",      "tr",       "ul"};
constexpr std::array<std::string_view, 5> kBreaks = {"br", "td", "th", "option", "legend"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Processes tags and text; a block ends at each opening or closing tag of a block element.
class HtmlReader {
 public:
  explicit HtmlReader(std::string_view document) : document_(document) {}

  std::vector<TextBlock> read() {
    while (at_ < document_.size()) {
      if (tag_begins(document_, at_)) {
        read_tag();
      } else if (document_[at_] == '&') {
        read_entity();
      } else {
        read_text();
      }
    }
    builder_.end_block(kind_);
    return builder_.take();
  }

 private:
  void read_text() {
    std::size_t end = at_ + 1;
    while (end < document_.size() && document_[end] != '<' && document_[end] != '&') ++end;
    builder_.add(document_.substr(at_, end - at_), at_);
    at_ = end;
  }

  void read_entity() {
    const auto [text, end] = entity_at(document_, at_);
    if (text.empty()) {
      builder_.add(document_.substr(at_, 1), at_);
      ++at_;
      return;
    }
    builder_.add_for(text, at_, end);
    at_ = end;
  }

  void read_tag() {
    if (document_.substr(at_).starts_with("<!--")) return skip_behind("-->");
    const bool closes = document_[at_ + 1] == '/';
    std::size_t end = at_ + (closes ? 2 : 1);
    const std::size_t begin = end;
    while (end < document_.size() && !is_end_of_name(document_[end])) ++end;
    const std::string name = lower_case(document_.substr(begin, end - begin));
    skip_tag(end);
    if (!closes && is_one_of(name, kSkipped)) return skip_element(name);
    if (is_one_of(name, kHeadings)) return border(closes ? Kind::paragraph : Kind::heading);
    if (name == "li" || name == "dt" || name == "dd") return border(closes ? Kind::paragraph : Kind::list_item);
    if (name == "tr") return border(closes ? Kind::paragraph : Kind::table_row);
    if (is_one_of(name, kBlocks)) return inside_row() ? builder_.add_blank(at_) : border(kind_after(name, closes));
    if (is_one_of(name, kBreaks)) builder_.add_blank(at_);
  }

  static bool is_end_of_name(char c) { return c == '>' || c == '/' || c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  // A table row stays one block, whatever block elements it contains; a <p> inside a list item keeps the kind
  // list_item.
  bool inside_row() const { return kind_ == Kind::table_row; }
  Kind kind_after(const std::string& name, bool closes) const {
    const bool in_item = kind_ == Kind::list_item && name == "p" && !closes;
    return in_item ? Kind::list_item : Kind::paragraph;
  }

  void border(Kind next) {
    builder_.end_block(kind_);
    kind_ = next;
  }

  // Values of attributes may hold a '>' in quotes, which begin right after the '='; others are characters like any.
  void skip_tag(std::size_t at) {
    char quote = 0, before = 0;  // the character before, blanks left out
    for (; at < document_.size(); ++at) {
      const char c = document_[at];
      const char last = is_space(c) ? before : std::exchange(before, c);
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if ((c == '"' || c == '\'') && last == '=') {
        quote = c;
      } else if (c == '>') {
        break;
      }
    }
    at_ = std::min(at + 1, document_.size());
  }

  void skip_behind(std::string_view what) {
    const std::size_t found = document_.find(what, at_);
    at_ = found == std::string_view::npos ? document_.size() : found + what.size();
  }

  // The element's content is not text of the document, even if it looks like tags.
  void skip_element(const std::string& name) {
    const std::string end = "</" + name;
    while (at_ < document_.size()) {
      at_ = std::min(document_.find('<', at_), document_.size());
      const std::string found = lower_case(document_.substr(at_, end.size()));
      if (found == end) return skip_tag(at_);
      at_ = std::min(at_ + 1, document_.size());
    }
  }

  std::string_view document_;
  std::size_t at_ = 0;
  Kind kind_ = Kind::paragraph;  // of the current block
  BlockBuilder builder_;
};

}  // namespace

std::vector<TextBlock> read_html(std::string_view document) {
  return HtmlReader(document).read();
}

}  // namespace etc::data

#include <algorithm>
#include <string>

#include "data/text/document_blocks.h"
#include "data/text/unicode.h"

namespace etc::data {

namespace {

using Kind = TextBlock::Kind;

bool is_digit_byte(char c) {
  return c >= '0' && c <= '9';
}

// Length of the mark "- ", "* ", "+ " or "12. " at a line's beginning; 0: none.
std::size_t list_mark(std::string_view line) {
  std::size_t at = 0;
  if (!line.empty() && (line[0] == '-' || line[0] == '*' || line[0] == '+')) {
    at = 1;
  } else {
    while (at < line.size() && at < 9 && is_digit_byte(line[at])) ++at;
    if (at == 0 || at >= line.size() || (line[at] != '.' && line[at] != ')')) return 0;
    ++at;
  }
  return at < line.size() && (line[at] == ' ' || line[at] == '\t') ? at + 1 : 0;
}

// Length of "# " … "###### " at a line's beginning; 0: none.
std::size_t heading_mark(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && at < 7 && line[at] == '#') ++at;
  return at >= 1 && at <= 6 && at < line.size() && line[at] == ' ' ? at + 1 : 0;
}

// Whether the line consists, apart from blanks, of these characters only, and of at least `least` of them.
bool consists_of(std::string_view line, std::string_view characters, std::int64_t least) {
  std::int64_t count = 0;
  for (const char c : line) {
    if (c == ' ' || c == '\t') continue;
    if (characters.find(c) == std::string_view::npos) return false;
    ++count;
  }
  return count >= least;
}

bool is_rule(std::string_view line) {
  return consists_of(line, "-", 3) || consists_of(line, "*", 3) || consists_of(line, "_", 3);
}

// The next occurrence of a mark in a line. Places must not decrease, so that all calls together read the line once.
class NextMark {
 public:
  NextMark(std::string_view line, std::string_view mark) : line_(line), mark_(mark), found_(line.find(mark)) {}

  // At `at` or after it; npos: none.
  std::size_t from(std::size_t at) {
    if (found_ < at) found_ = line_.find(mark_, at);
    return found_;
  }

 private:
  std::string_view line_, mark_;
  std::size_t found_;
};

// The marks in which links and tags end.
struct LineMarks {
  explicit LineMarks(std::string_view line)
      : bracket(line, "]"), link(line, "]("), parenthesis(line, ")"), tag_end(line, ">") {}

  NextMark bracket, link, parenthesis, tag_end;
};

class MarkdownReader {
 public:
  explicit MarkdownReader(std::string_view document) : document_(document) {}

  std::vector<TextBlock> read() {
    for_each_document_line(document_, [&](std::size_t begin, std::string_view line) { read_line(begin, line); });
    builder_.end_block(kind_);
    return builder_.take();
  }

 private:
  void read_line(std::size_t begin, std::string_view line) {
    if (const bool fence = strip(line).starts_with("```") || strip(line).starts_with("~~~"); fence || in_code_) {
      if (fence) {
        builder_.end_block(kind_);
        kind_ = Kind::paragraph;
        in_code_ = !in_code_;
      } else {
        builder_.add(line, begin);
        builder_.add_blank(begin + line.size());
      }
      return;
    }
    while (!line.empty() && (line[0] == ' ' || line[0] == '\t' || line[0] == '>')) {  // indents and quotes
      line.remove_prefix(1);
      ++begin;
    }
    const bool under = consists_of(line, "=", 1) || consists_of(line, "-", 2);  // the line before is a heading
    if (line.empty() || (under && !builder_.text().empty() && kind_ == Kind::paragraph) || is_rule(line)) {
      return border(under && !line.empty() ? Kind::heading : kind_);
    }
    read_marked(begin, line);
  }

  void read_marked(std::size_t begin, std::string_view line) {
    if (const std::size_t mark = heading_mark(line)) {
      border(kind_);
      kind_ = Kind::heading;
      while (line.ends_with('#') || line.ends_with(' ')) line.remove_suffix(1);
      if (line.size() > mark) add_inline(begin + mark, line.substr(mark));
      return border(kind_);
    }
    if (const std::size_t mark = list_mark(line)) {
      border(kind_);
      kind_ = Kind::list_item;
      begin += mark;
      line.remove_prefix(mark);
    } else if (line.starts_with('|')) {
      border(kind_);
      if (consists_of(line, "|-:", 1)) return;  // the line below a table's header
      kind_ = Kind::table_row;
    }
    add_inline(begin, line);
    builder_.add_blank(begin + line.size());
  }

  // Ends the current block, with this kind.
  void border(Kind kind) {
    builder_.end_block(kind);
    kind_ = Kind::paragraph;
  }

  // Adds the text of a line without its Markdown marks.
  void add_inline(std::size_t begin, std::string_view line) {
    LineMarks marks(line);
    for (std::size_t i = 0; i < line.size();) {
      const char c = line[i];
      const std::size_t at = begin + i;
      if (c == '\\' && i + 1 < line.size() && is_punctuation(static_cast<unsigned char>(line[i + 1]))) {
        builder_.add(line.substr(i + 1, 1), at + 1);
        i += 2;
      } else if (c == '`' || c == '*' || (c == '_' && at_word_border(line, i))) {
        ++i;
      } else if (c == '|' && kind_ == Kind::table_row) {
        builder_.add_blank(at);
        ++i;
      } else if (const std::size_t link = link_at(line, i, marks); link > i) {
        const std::size_t text = i + (c == '!' ? 2 : 1);
        add_inline(begin + text, line.substr(text, marks.bracket.from(text) - text));
        i = link;
      } else {
        i = add_character(begin, line, i, marks.tag_end);
      }
    }
  }

  // Adds a character or the character of an entity, and skips an HTML tag; returns where the next character begins.
  std::size_t add_character(std::size_t begin, std::string_view line, std::size_t i, NextMark& tag_end) {
    if (line[i] == '&') {
      const auto [text, end] = entity_at(line, i);
      if (!text.empty()) {
        builder_.add_for(text, begin + i, begin + end);
        return end;
      }
    }
    if (tag_begins(line, i)) {
      if (const std::size_t end = tag_end.from(i); end != std::string_view::npos) return end + 1;
    }
    std::size_t end = i;
    next_code_point(line, end);
    builder_.add(line.substr(i, end - i), begin + i);
    return end;
  }

  static bool at_word_border(std::string_view line, std::size_t i) {
    const auto is_word_byte = [&](std::size_t k) {
      const auto byte = static_cast<unsigned char>(line[k]);
      return byte >= 0x80 || is_word(byte);
    };
    return i == 0 || i + 1 == line.size() || !is_word_byte(i - 1) || !is_word_byte(i + 1);
  }

  // One past the "[text](address)" or "![text](address)" at i; i if there is no link.
  static std::size_t link_at(std::string_view line, std::size_t i, LineMarks& marks) {
    const std::size_t open = line[i] == '!' ? i + 1 : i;
    if (open >= line.size() || line[open] != '[') return i;
    const std::size_t middle = marks.link.from(open);
    if (middle == std::string_view::npos || marks.bracket.from(open) != middle) return i;
    const std::size_t end = marks.parenthesis.from(middle);
    return end == std::string_view::npos ? i : end + 1;
  }

  std::string_view document_;
  Kind kind_ = Kind::paragraph;  // of the current block
  bool in_code_ = false;
  BlockBuilder builder_;
};

}  // namespace

std::vector<TextBlock> read_markdown(std::string_view document) {
  return MarkdownReader(document).read();
}

}  // namespace etc::data

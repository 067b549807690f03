// Users' documents → blocks of text with their places.
#include "data/text/document.h"

#include <chrono>

#include "data/text/characters.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"

using namespace etc;
using data::DocumentForm;
using data::TextBlock;

namespace {

constexpr char kLetters[] = "HPLT";  // heading, paragraph, list item, table row

// "H title", "P text" …
std::vector<std::string> blocks_of(const std::string& document, DocumentForm form) {
  std::vector<std::string> found;
  for (const TextBlock& block : data::read_blocks(document, form)) {
    REQUIRE(block.places.size() == block.text.size());
    found.push_back(std::string(1, kLetters[static_cast<int>(block.kind)]) + " " + block.text);
    // Every byte except those of blanks and entities represents itself.
    for (std::size_t i = 0; i < block.text.size(); ++i) {
      const data::ByteSpan place = block.places[i];
      REQUIRE(place.begin >= 0);
      REQUIRE(place.end >= place.begin);
      REQUIRE(place.end <= static_cast<std::int64_t>(document.size()));
      if (place.end - place.begin == 1 && block.text[i] != ' ')
        REQUIRE(document[static_cast<std::size_t>(place.begin)] == block.text[i]);
    }
  }
  return found;
}

using Texts = std::vector<std::string>;

std::string refused(const std::string& document) {
  try {
    data::require_text(document, "d.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("plain text has paragraphs between empty lines, and short lines alone as headings", "[document]") {
  CHECK(blocks_of("The harbour\n\n It is  old.\r\nAnd quiet.\n \t\n\nLast line", DocumentForm::plain) ==
        Texts{"H The harbour", "P It is old. And quiet.", "P Last line"});
  CHECK(blocks_of("One line, no end", DocumentForm::plain) == Texts{"P One line, no end"});
  CHECK(blocks_of("Ends.\n\nText", DocumentForm::plain) == Texts{"P Ends.", "P Text"});
  CHECK(blocks_of(std::string(101, 'x') + "\n\nText", DocumentForm::plain)[0].front() == 'P');
}

TEST_CASE("Markdown loses its marks and keeps its words", "[document]") {
  CHECK(blocks_of(
            "# Title #\n\nSome *bold* and `code`, a [link](http://a.b/c_d) and snake_case.\n\n- one\n- two\n  more\n\n"
            "1. first\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nUnder\n-----\n> quoted &amp; <b>tagged</b>\n\n"
            "```\n# no heading\n```\n***\n\\*kept\\*",
            DocumentForm::markdown) == Texts{"H Title", "P Some bold and code, a link and snake_case.", "L one",
                                             "L two more", "L first", "T a b", "T 1 2", "H Under", "P quoted & tagged",
                                             "P # no heading", "P *kept*"});
}

TEST_CASE("links of a line are found from the first bracket that may begin one", "[document]") {
  const auto text = [](const std::string& line) { return blocks_of(line, DocumentForm::markdown).at(0); };
  CHECK(text("[a](x) [b] (y) [c](z") == "P a [b] (y) [c](z");
  CHECK(text("[[a](x)](y) [b](z)") == "P [a](y) b");
  CHECK(text("![alt [in] x](p) <b>c</b> < d> [e](f)") == "P ![alt [in] x](p) c < d> e");
  CHECK(text("[a] [b](x) c > d <i") == "P [a] b c > d <i");
}

TEST_CASE("a Markdown line of a million open brackets or tags is read in time that grows with its length",
          "[document]") {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string mark : {"[", "<a ", "[]"}) {
    std::string line;
    while (line.size() < 1'000'000) line += mark;
    CHECK(data::read_blocks(line + "end", DocumentForm::markdown).at(0).text.ends_with("end"));
    CHECK(data::read_blocks(line + "](", DocumentForm::markdown).size() == 1);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 5);  // searched anew from every bracket, the ends take several times as long
}

TEST_CASE("HTML has the blocks of its tags, without scripts and comments", "[document]") {
  CHECK(blocks_of("<!DOCTYPE html><html><head><title>Page</title><style>p { x: 'y' }</style></head><body>"
                  "<script>if (a < b) document.write('<p>no</p>')</script><h1 class=\"a>b\">Top</h1>"
                  "<p>One <b>bo</b>ld&nbsp;&#8211; a&ltb &unknown; 3 < 4.<br>Two<!-- <p>hidden --></p>"
                  "<ul><li>x<li>y <p>z</p></ul><table><tr><th>a</th><td><p>b</p></td></tr></table>tail",
                  DocumentForm::html) ==
        Texts{"H Page", "H Top", "P One bold – a&ltb &unknown; 3 < 4. Two", "L x", "L y", "L z", "T a b", "P tail"});
  CHECK(blocks_of("<p>open <script>never closed", DocumentForm::html) == Texts{"P open"});
  CHECK(blocks_of("<p attr='", DocumentForm::html).empty());
  // A quote inside a value without quotes is part of it.
  CHECK(blocks_of("<p title=it's>one</p><p title = 'a>b' id=\"c>d\">two</p>", DocumentForm::html) ==
        Texts{"P one", "P two"});
}

TEST_CASE("places lead from a block's text back into the document", "[document]") {
  const std::string document = "<p>caf\xC3\xA9 &amp;\n  bar</p>";
  const auto blocks = data::read_blocks(document, DocumentForm::html);
  REQUIRE(blocks.size() == 1);
  REQUIRE(blocks[0].text == "caf\xC3\xA9 & bar");
  const auto text = [&](std::size_t begin, std::size_t end) {
    const data::ByteSpan place = data::place_of(blocks[0], begin, end);
    return document.substr(static_cast<std::size_t>(place.begin), static_cast<std::size_t>(place.end - place.begin));
  };
  CHECK(text(0, 5) == "caf\xC3\xA9");
  CHECK(text(6, 7) == "&amp;");
  CHECK(text(6, 11) == "&amp;\n  bar");
  CHECK(data::character_count("caf\xC3\xA9") == 4);
  CHECK(data::byte_of_character("caf\xC3\xA9 x", 4) == 5);
  CHECK(data::byte_of_character("ab", 7) == 2);
}

TEST_CASE("a byte order mark is no text, and places count its bytes", "[document]") {
  const std::string mark = "\xEF\xBB\xBF";
  CHECK(blocks_of(mark + "Old.\n\nCold.", DocumentForm::plain) == Texts{"P Old.", "P Cold."});
  CHECK(blocks_of(mark + "# Title\n\nOld.", DocumentForm::markdown) == Texts{"H Title", "P Old."});
  CHECK(blocks_of(mark + "<p>Old.</p>", DocumentForm::html) == Texts{"P Old."});
  CHECK(blocks_of(mark, DocumentForm::plain).empty());
  CHECK(data::form_of("-", mark + "<html>") == DocumentForm::html);
}

TEST_CASE("the form of a document is that of its name, or of its beginning", "[document]") {
  CHECK(data::form_of("a.MD", "") == DocumentForm::markdown);
  CHECK(data::form_of("a.htm", "") == DocumentForm::html);
  CHECK(data::form_of("-", "\n<!DOCTYPE HTML>") == DocumentForm::html);
  CHECK(data::form_of("a.txt", "<html lang=en>") == DocumentForm::html);
  CHECK(data::form_of("a.txt", "html") == DocumentForm::plain);
}

TEST_CASE("what is no text is refused with the reason", "[document]") {
  CHECK(refused("text").empty());
  CHECK(refused("") == "d.txt: the document is empty");
  CHECK_THAT(refused(" \n"), Catch::Contains("white space alone"));
  CHECK_THAT(refused(std::string("a\0b", 3)), Catch::Contains("byte 1 is zero") && Catch::Contains("binary"));
  CHECK_THAT(refused("ab\xff"), Catch::Contains("byte 2 is not valid UTF-8"));
}

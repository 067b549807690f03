
#include "data/text/punkt_words.h"
#include "data/text/sentence_splitter.h"
#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/threads.h"

using namespace etc;
using Sentences = std::vector<std::string>;
using Catch::Contains;

namespace {

Sentences split(const data::SentenceSplitter& splitter, const std::string& text) {
  Sentences sentences;
  for (const data::ByteSpan span : splitter.split(text)) {
    sentences.push_back(
        text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin)));
  }
  return sentences;
}

// Punkt's four files, small enough to show the effect of each entry.
struct Tables {
  std::string abbreviations = "mr\nu.s\n. . \ncorp";
  std::string collocations = "##number##\tfig";
  std::string starters = "besides";
  std::string contexts = "he\t118\nnavy\t4\nhowever\t18\nthen\t16";

  std::unique_ptr<data::SentenceSplitter> load() const {
    const test::TemporaryFolder folder;
    write(folder);
    return data::load_splitter("punkt:" + folder.path().string());
  }
  void write(const test::TemporaryFolder& folder) const {
    test::write_file(folder / "abbrev_types.txt", abbreviations);
    test::write_file(folder / "collocations.tab", collocations);
    test::write_file(folder / "sent_starters.txt", starters);
    test::write_file(folder / "ortho_context.tab", contexts);
  }
};

Sentences words(const std::string& context) {
  std::vector<std::string_view> found;
  data::punkt::split_words(context, found);
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("Punkt ends sentences where no table is needed", "[data][text]") {
  const auto punkt = Tables().load();
  REQUIRE(split(*punkt, "") == Sentences{});
  REQUIRE(split(*punkt, " \n\u00a0") == Sentences{});
  REQUIRE(split(*punkt, "no end here") == Sentences{"no end here"});
  REQUIRE(split(*punkt, "They left . He stayed .") == Sentences{"They left .", "He stayed ."});
  REQUIRE(split(*punkt, "Is it? Yes! Fine.") == Sentences{"Is it?", "Yes!", "Fine."});
  REQUIRE(split(*punkt, "  It left.\u3000She came.  ") == Sentences{"  It left.", "She came."});
}

TEST_CASE("Punkt moves closing quotes and brackets back to the sentence they close", "[data][text]") {
  const auto punkt = Tables().load();
  REQUIRE(split(*punkt, "It fell (in 1911.) Then it rose.") == Sentences{"It fell (in 1911.)", "Then it rose."});
  REQUIRE(split(*punkt, "It said \"Go.\" She went.") == Sentences{"It said \"Go.\"", "She went."});
  REQUIRE(split(*punkt, "Gone. ') So") == Sentences{"Gone. ')", "So"});
  REQUIRE(split(*punkt, "Gone.\"--So") == Sentences{"Gone.\"", "--So"});
  REQUIRE(split(*punkt, "Gone.\"So") == Sentences{"Gone.", "\"So"});
}

TEST_CASE("Punkt knows abbreviations, initials, numbers, collocations and starters", "[data][text]") {
  const auto punkt = Tables().load();
  REQUIRE(split(*punkt, "It met Mr. Smith.").size() == 1);
  REQUIRE(split(*punkt, "It met vice-Mr. Smith.").size() == 1);  // the part after the last hyphen
  REQUIRE(split(*punkt, "The U.S. Navy came.").size() == 1);
  REQUIRE(split(*punkt, "In the U.S. However it is.").size() ==
          2);                                                     // seen with a small letter, never mid-sentence upper
  REQUIRE(split(*punkt, "At Corp. Besides it is.").size() == 2);  // a frequent starter
  REQUIRE(split(*punkt, "It met J. Smith.").size() == 1);         // an initial and a word never seen small
  REQUIRE(split(*punkt, "It met J. He left.").size() == 2);
  REQUIRE(split(*punkt, "It has 5. then").size() == 2);  // a number, but "then" was seen small at a start
  REQUIRE(split(*punkt, "It has 5. navy").size() == 1);
  REQUIRE(split(*punkt, "See 5. fig").size() == 1);  // the collocation
  REQUIRE(split(*punkt, "Wait ... Besides it is.").size() == 2);
  REQUIRE(split(*punkt, "Wait ... it is.").size() == 1);
}

TEST_CASE("Punkt cuts a context into words", "[data][text]") {
  REQUIRE(words("(in 1911.)") == Sentences{"(", "in", "1911.", ")"});
  REQUIRE(words("said,\"Go.\"") == Sentences{"said", ",", "\"", "Go.", "\""});
  REQUIRE(words("1,000, x") == Sentences{"1,000", ",", "x"});
  REQUIRE(words("a--b...c") == Sentences{"a", "--", "b", "...", "c"});
  REQUIRE(words(". . . x") == Sentences{". . .", "x"});
  REQUIRE(words(". . x") == Sentences{".", ".", "x"});
  REQUIRE(words(". . . .x") == Sentences{". . . .", "x"});
  REQUIRE(words("one\n\n \ntwo.") == Sentences{"one", "two."});
  REQUIRE(words("e-mail \u00e9t\u00e9\u00a0x") == Sentences{"e-mail", "\u00e9t\u00e9", "x"});
}

TEST_CASE("Punkt's numbers may carry a sign, separators and a final period", "[data][text]") {
  for (const char* number : {"5", "-5", ".5", "-,5.", "1,000.50", "1-2", "\u0663."}) {
    REQUIRE(data::punkt::is_number(number));
  }
  for (const char* word : {"", "-", ".", "5th", "--5", "x5", "\u00b2"}) REQUIRE_FALSE(data::punkt::is_number(word));
}

TEST_CASE("ICU's splitter gives trimmed sentences and no empty ones", "[data][text]") {
  const auto icu = data::load_splitter("icu");
  REQUIRE(icu->name() == "icu");
  REQUIRE(icu->tables_sha256().empty());
  REQUIRE(split(*icu, "") == Sentences{});
  REQUIRE(split(*icu, " \n \u00a0") == Sentences{});
  REQUIRE(split(*icu, "  Is it? Yes! It is.\n\nNew \u00e9t\u00e9. ") ==
          Sentences{"Is it?", "Yes!", "It is.", "New \u00e9t\u00e9."});
  REQUIRE(split(*icu, "a\xff b") == Sentences{"a\xff b"});
}

TEST_CASE("Punkt names itself and its tables", "[data][text]") {
  const auto punkt = Tables().load();
  REQUIRE(punkt->name() == "punkt");
  REQUIRE(punkt->tables_sha256().size() == 64);
  Tables other;
  other.starters = "besides\nthen";
  REQUIRE(other.load()->tables_sha256() != punkt->tables_sha256());
}

TEST_CASE("a splitter nobody knows is a usage error", "[data][text]") {
  REQUIRE_THROWS_AS(data::load_splitter("spacy"), UsageError);
  REQUIRE_THROWS_WITH(
      data::load_splitter("spacy"),
      "splitter: expected \"icu\" or \"punkt:DIR\" (DIR: the folder of the Punkt tables), got \"spacy\"");
  REQUIRE_THROWS_AS(data::load_splitter("punkt:"), UsageError);
}

TEST_CASE("Punkt tables that cannot be meant so are refused by file and line", "[data][text]") {
  REQUIRE_THROWS_WITH(data::load_splitter("punkt:/nowhere"), Contains("/nowhere/abbrev_types.txt: cannot open"));
  const auto refuses = [](std::string Tables::*file, const std::string& text, const std::string& message) {
    Tables tables;
    tables.*file = text;
    REQUIRE_THROWS_WITH(tables.load(), Contains(message));
  };
  refuses(&Tables::contexts, "", "ortho_context.tab: the Punkt table is empty");
  refuses(&Tables::abbreviations, "mr\n\nu.s", "line 2: is empty");
  refuses(&Tables::abbreviations, "mr\xff", "abbrev_types.txt: byte 2 is not valid UTF-8");
  refuses(&Tables::abbreviations, "mr\r\nu.s\r\n", "line 1: ends in a carriage return: expected line feeds alone");
  refuses(&Tables::abbreviations, "mr\tx", "line 1: expected 1 columns with tabs between, got 2");
  refuses(&Tables::collocations, "a\tb\nc", "collocations.tab: line 2: expected 2 columns with tabs between, got 1");
  refuses(&Tables::starters, "a\nb\na", "sent_starters.txt: line 3: repeats the entry \"a\"");
  refuses(&Tables::contexts, "a", "ortho_context.tab: line 1: expected a type, a tab and a number");
  refuses(&Tables::contexts, "a\t128", "expected a number from 0 to 127 after the tab, got \"128\"");
  refuses(&Tables::contexts, "a\t1\na\t2", "line 2: repeats the type \"a\"");
}

TEST_CASE("one splitter of either kind serves several threads", "[data][text]") {
  const std::string text = "They left . He stayed . Mr. Smith met the U.S. Navy. Is it? Yes!";
  for (const auto& splitter : {Tables().load().release(), data::load_splitter("icu").release()}) {
    const std::unique_ptr<data::SentenceSplitter> owner(splitter);
    const Sentences expected = split(*splitter, text);
    REQUIRE(test::failures_on_threads(100, [&] { return split(*splitter, text) == expected; }) == 0);
  }
}

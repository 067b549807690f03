// Tables learned from text, compared with those of NLTK 3.5's trainer for the same text.
#include "data/text/punkt_trainer.h"

#include <set>

#include "data/text/sentence_splitter.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::data;

namespace {

// A text with abbreviations of every kind, numbers, initials, line feeds and paragraphs.
std::string text() {
  const char* names[] = {"Dahl", "Berg", "Lund", "Holm", "Vik"};
  const char* things[] = {"ship", "house", "mill", "boat", "farm"};
  std::string t;
  for (int i = 0; i < 40; ++i) {
    const std::string name = names[i % 5], other = names[(i + 2) % 5], thing = things[i * 3 % 5];
    t += "Dr. " + name + " bought the " + thing + " in " + std::to_string(1900 + i) + ". However, it cost ca. " +
         std::to_string(i + 3) + " marks. He sold it to J. " + other + " of the comp. after a year, i.e. in spring. ";
    if (i % 4 == 0) {
      t +=
          "\n\nThe " + thing + " burned down! Was it No. " + std::to_string(i + 1) + " of all? However, nobody knew.\n";
    }
    if (i % 7 == 0) {
      t += "They met at St. Olav with Mr. " + name + ". Then prof. berg left ... and came back.\n";
    }
  }
  return t + "It was a rare abbr. which nobody knew. Abbr of it: misc. , so they said. Which is odd.";
}

PunktTables learned(const std::vector<std::string>& texts) {
  return learn_punkt([&](const auto& visit) {
    for (const std::string& each : texts) visit(each);
  });
}

// Sentences full of periods that do not end the sentence, in varying combinations.
std::vector<std::string> sentences(std::size_t count) {
  const char* names[] = {"Dahl", "Berg", "Lund", "Holm", "Vik"};
  const char* things[] = {"ship", "house", "mill", "boat", "farm", "barn", "tower"};
  const char* traits[] = {"old", "quiet", "narrow", "green", "stony", "bright"};
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = names[i % 5], o = names[(3 * i + 1) % 5], t = things[i % 7], u = things[(5 * i + 2) % 7];
    const std::string a = traits[7 * i % 6], number = std::to_string(i);
    const std::string kinds[] = {
        "Dr. " + n + " bought the " + t + ".",
        "The " + a + " " + u + " belongs to Mr. " + o + " and the " + t + ".",
        "It cost ca. " + number + " marks and a " + u + ".",
        "Then " + n + " sold the " + t + " to J. " + o + " of the " + u + ".",
        "Was the " + u + " " + a + "?",
        "He saw the " + t + ", i.e. the " + u + ", which was " + a + ".",
        "A " + t + " of the comp. burned near the " + a + " " + u + ".",
        "Prof. " + o + " and Mrs. " + n + " of St. Olav met at No. " + number + " of the " + t + "."};
    list.push_back(kinds[i % 8]);
  }
  return list;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : " ") + sentence;
  return text;
}

// How many sentences the splitter finds unchanged in their joined text.
std::size_t whole_sentences(const SentenceSplitter& splitter, const std::vector<std::string>& sentences) {
  std::set<std::pair<std::int64_t, std::int64_t>> spans;
  for (const ByteSpan& span : splitter.split(joined(sentences))) spans.emplace(span.begin, span.end);
  std::size_t found = 0;
  std::int64_t begin = 0;
  for (const std::string& sentence : sentences) {
    found += spans.count({begin, begin + std::ssize(sentence)});
    begin += std::ssize(sentence) + 1;
  }
  return found;
}

std::set<std::string> sorted(const StringSet& set) {
  return {set.begin(), set.end()};
}

std::map<std::string, int> sorted(const PunktTables& tables) {
  return {tables.contexts.begin(), tables.contexts.end()};
}

}  // namespace

TEST_CASE("the likelihoods behind the tables are NLTK's", "[data][text]") {
  CHECK(punkt::abbreviation_likelihood(30, 500, 28, 10000) == Approx(148.98268094482523).epsilon(1e-12));
  CHECK(punkt::collocation_likelihood(100, 50, 20, 10000) == Approx(121.646276025725).epsilon(1e-12));
  CHECK(punkt::collocation_likelihood(20, 50, 20, 10000) == Approx(221.24313054259778).epsilon(1e-12));
}

TEST_CASE("Punkt tables learned from text are those of NLTK's trainer", "[data][text]") {
  const PunktTables tables = learned({text()});
  CHECK(sorted(tables.abbreviations) ==
        std::set<std::string>{"abbr", "ca", "comp", "dr", "i.e", "j", "knew", "marks", "misc", "mr", "no", "st"});
  CHECK(sorted(tables.starters) == std::set<std::string>{"then"});
  CHECK(sorted(tables.collocations) == std::set<std::string>{"##number##\thowever"});
  const std::map<std::string, int> expected = {
      {"a", 32},     {"abbr", 40},    {"after", 64},  {"all", 32},    {"and", 64},  {"at", 32},     {"back", 32},
      {"berg", 24},  {"boat", 32},    {"bought", 32}, {"burned", 32}, {"ca.", 32},  {"came", 32},   {"comp.", 32},
      {"cost", 32},  {"dahl", 8},     {"down", 32},   {"dr.", 10},    {"farm", 32}, {"he", 8},      {"holm", 8},
      {"house", 32}, {"however", 10}, {"i.e.", 32},   {"in", 96},     {"is", 32},   {"it", 34},     {"j.", 4},
      {"knew.", 32}, {"left", 32},    {"lund", 8},    {"marks.", 32}, {"met", 32},  {"mill", 32},   {"misc", 32},
      {"mr.", 4},    {"no.", 4},      {"nobody", 32}, {"odd", 32},    {"of", 32},   {"olav", 8},    {"prof", 32},
      {"rare", 32},  {"said", 32},    {"ship", 32},   {"so", 32},     {"sold", 32}, {"spring", 32}, {"st.", 4},
      {"the", 34},   {"then", 2},     {"they", 42},   {"to", 32},     {"vik", 8},   {"was", 34},    {"which", 18},
      {"with", 32},  {"year", 32}};
  CHECK(sorted(tables) == expected);
}

TEST_CASE("several texts are one text with empty lines between", "[data][text]") {
  const std::string whole = text();
  const std::size_t half = whole.find("The boat");
  REQUIRE(half != std::string::npos);
  const std::string first = whole.substr(0, half), second = whole.substr(half);
  const PunktTables together = learned({first + "\n\n" + second}), apart = learned({first, second});
  CHECK(sorted(together.abbreviations) == sorted(apart.abbreviations));
  CHECK(sorted(together.starters) == sorted(apart.starters));
  CHECK(sorted(together.collocations) == sorted(apart.collocations));
  CHECK(sorted(together) == sorted(apart));
}

TEST_CASE("learned tables are written whole, read back, and split what they were learned from", "[data][text]") {
  const test::TemporaryFolder folder;
  const PunktTables tables = learned({text()});
  write_punkt_tables(tables, folder / "learned");
  const PunktTables again = read_punkt_tables(folder / "learned");
  CHECK(sorted(again.abbreviations) == sorted(tables.abbreviations));
  CHECK(sorted(again.collocations) == sorted(tables.collocations));
  CHECK(sorted(again) == sorted(tables));
  CHECK(read_file(folder / "learned" / "sent_starters.txt") == "then\n");
  const auto splitter = load_splitter("punkt:" + (folder / "learned").string());
  CHECK(splitter->split("Dr. Dahl met J. Berg. They left.").size() == 2);
  CHECK_THROWS_WITH(write_punkt_tables(tables, folder / "learned"), Catch::Contains("exists already"));
  CHECK_THROWS_AS(write_punkt_tables(tables, "/proc/none/learned"), Error);
}

TEST_CASE("learned tables split text with abbreviations at least as well as ICU", "[data][text]") {
  const std::vector<std::string> known = sentences(400), other = sentences(403);
  const test::TemporaryFolder folder;
  write_punkt_tables(learned({joined(known)}), folder / "learned");
  const auto found = [&](const std::string& splitter) { return whole_sentences(*load_splitter(splitter), other); };
  const std::size_t by_punkt = found("punkt:" + (folder / "learned").string()), by_icu = found("icu");
  std::printf("of %zu sentences whole: %zu with learned tables, %zu with ICU\n", other.size(), by_punkt, by_icu);
  CHECK(by_punkt == other.size());
  CHECK(by_icu < by_punkt);
}

TEST_CASE("texts without words teach nothing, odd ones do no harm", "[data][text]") {
  CHECK_THROWS_AS(learned({}), Error);
  CHECK_THROWS_AS(learned({"", " \n\t\n"}), Error);
  CHECK(learned({". . . . ."}).abbreviations.empty());
  CHECK(learned({"a. a. a. a."}).starters.empty());
  CHECK(learned({"x"}).contexts.size() == 1);
  for (const char* odd : {"\xff\xfe.", "é. É. ß.", "1. 2. 3.", "..... ...", "\n.\n.\n", "-.5 .5. -"})
    learned({odd, odd});
}

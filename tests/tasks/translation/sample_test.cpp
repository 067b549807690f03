// The generated pair of languages: equal for equal seeds, and a translation that the sentence alone decides.
#include "data/sample/translation_sample.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/tasks/sample_checks.h"

namespace etc::test {
namespace {

using Options = data::TranslationSampleOptions;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST_CASE("equal seeds write equal pairs, and another seed others", "[translation]") {
  const TemporaryFolder folder;
  Options options;
  options.records = 30;
  for (const char* name : {"a", "b", "c"}) {
    if (*name == 'c') options.seed = 2;
    data::write_translation_sample(options, folder / name);
  }
  for (const char* file : {"train.source", "train.target", "dev.source", "dev.target", "vocab.words"}) {
    CHECK(read_file(folder / "a" / file) == read_file(folder / "b" / file));
  }
  CHECK(read_file(folder / "a" / "train.source") != read_file(folder / "c" / "train.source"));
  CHECK(read_file(folder / "a" / "train.source") != read_file(folder / "a" / "dev.source"));
}

TEST_CASE("options of a language that cannot be are refused before anything is written", "[translation]") {
  Options none, crowd, silent;
  none.records = 0;
  crowd.nouns = 49;
  silent.clauses = 0;
  check_refused_options(data::write_translation_sample, Options{}, {none, crowd, silent});
}

TEST_CASE("the verb ends its clause, adjectives follow and agree with their nouns", "[translation]") {
  Options options;
  options.nouns = 4;  // babren dobren febren gibren; adjectives kabren lubren; verbs mobren nebren
  const auto translate = [&](const std::string& source) { return data::translate_sample(options, source); };
  CHECK(translate("the babren mobrens a dobren .") == "ol nerbab un nerbod nerbomi .");
  CHECK(translate("the kabren babren mobrens some dobrens .") == "ol nerbab nerbako des nerboden nerbomi .");
  // The second noun has the other gender; its adjective, and the verb of several, have other endings.
  CHECK(translate("some kabren dobrens mobren the lubren dobren .") ==
        "des nerboden nerbakas ol nerbod nerbula nerbomun .");
  CHECK(translate("a babren nebrens a babren and a gibren nebrens a babren .") ==
        "un nerbab un nerbab nerbeni ed un nerbig un nerbab nerbeni .");
}

TEST_CASE("what is no sentence of the language is an error that shows it", "[translation]") {
  const auto translate = [](const char* source) { return data::translate_sample({}, source); };
  CHECK_THROWS_WITH(translate("dog"), "translation sample: expected an article, got \"dog\" in \"dog\"");
  CHECK_THROWS_WITH(translate("the dog barks"), Catch::Contains("expected a word of the language in its place"));
  CHECK_THROWS_AS(translate(""), Error);
}

TEST_CASE("every generated pair has its known answer in words of the vocabulary", "[translation]") {
  const TemporaryFolder folder;
  Options options;
  options.records = 200;
  options.clauses = 3;
  data::write_translation_sample(options, folder.path());
  const auto vocabulary = data::load_tokenizer(folder / "vocab.words");
  std::istringstream sources(read_file(folder / "train.source")), targets(read_file(folder / "train.target"));
  std::size_t longest = 0, pairs = 0;
  for (std::string source, target; std::getline(sources, source) && std::getline(targets, target); ++pairs) {
    CHECK(data::translate_sample(options, source) == target);
    CHECK(target != source);
    for (const std::string& side : {source, target}) {
      const auto ids = vocabulary->encode_ids(side);
      CHECK(ids.size() == words_of(side).size());
      CHECK(std::count(ids.begin(), ids.end(), 3) == 0);
    }
    longest = std::max(longest, words_of(source).size());
  }
  CHECK(pairs == 200);
  CHECK(longest > 14);  // three clauses
}

}  // namespace
}  // namespace etc::test

#include "data/sample/translation_sample.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "data/sample/word_source.h"
#include "data/text/subword_vocab.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMostNouns = 48, kMostClauses = 8;

// Vocabulary of the two languages. Word i of a kind is translated to word i of the same kind.
struct Language {
  explicit Language(std::int64_t nouns) {
    const auto count = static_cast<std::size_t>(nouns), half = count / 2;
    // The source language's words are from names(); the target language's words are the same names spelled backwards.
    all = names(0, count + 2 * half);
    noun = {all.begin(), all.begin() + nouns};
    adjective = {all.begin() + nouns, all.begin() + nouns + static_cast<std::int64_t>(half)};
    verb = {all.begin() + nouns + static_cast<std::int64_t>(half), all.end()};
  }

  std::vector<std::string> all, noun, adjective, verb;
};

std::string backwards(const std::string& word) {
  return {word.rbegin(), word.rend()};
}

// ---- Source sentences. ----

const std::string& one_of(const std::vector<std::string>& words, Choices& choices) {
  return words[static_cast<std::size_t>(choices.below(std::ssize(words)))];
}

std::string noun_phrase(const Language& language, Choices& choices, bool plural) {
  std::string phrase = choices.below(2) == 0 ? "the " : plural ? "some " : "a ";
  if (choices.below(3) > 0) phrase += one_of(language.adjective, choices) + " ";
  return phrase + one_of(language.noun, choices) + (plural ? "s" : "");
}

std::string clause(const Language& language, Choices& choices) {
  const bool plural = choices.below(2) == 1;
  std::string text =
      noun_phrase(language, choices, plural) + " " + one_of(language.verb, choices) + (plural ? "" : "s");
  return text + " " + noun_phrase(language, choices, choices.below(2) == 1);
}

// ---- Their translation. ----

class Translator {
 public:
  Translator(const Language& language, const std::string& source) : source_(source), words_(source) {
    for (const std::string& word : language.noun) kinds_.emplace(word, Kind::noun);
    for (const std::string& word : language.adjective) kinds_.emplace(word, Kind::adjective);
    for (const std::string& word : language.verb) kinds_.emplace(word, Kind::verb);
    for (std::size_t i = 0; i < language.noun.size(); ++i) genders_[language.noun[i]] = i % 2;
    take();
  }

  std::string translate() {
    std::string text;
    while (true) {
      const Phrase subject = phrase();
      const std::string verb = stem(Kind::verb);
      const Phrase object = phrase();
      // The verb goes to the end, with the ending for its subject's number.
      text += subject.text + " " + object.text + " " + backwards(verb) + (subject.plural ? "un" : "i");
      if (word_ != "and") break;
      take();
      text += " ed ";
    }
    if (word_ != ".") fail_word("a full stop");
    return text + " .";
  }

 private:
  enum class Kind { noun, adjective, verb };
  struct Phrase {
    std::string text;
    bool plural;
  };

  void take() {
    word_.clear();
    words_ >> word_;
  }

  [[noreturn]] void fail_word(const char* expected) const {
    fail("translation sample", "expected {}, got \"{}\" in \"{}\"", expected, word_, source_);
  }

  // The word without the ending -s of plural nouns and of verbs with singular subjects; moves to the next word.
  std::string stem(Kind kind, bool* ending = nullptr) {
    std::string word = word_;
    bool ends = false;
    if (kinds_.find(word) == kinds_.end() && word.ends_with('s')) {
      word.pop_back();
      ends = true;
    }
    const auto found = kinds_.find(word);
    if (found == kinds_.end() || found->second != kind) fail_word("a word of the language in its place");
    if (ending != nullptr) *ending = ends;
    take();
    return word;
  }

  // "the small dogs" → article, noun with its number, adjective with the noun's gender and number.
  Phrase phrase() {
    static const std::unordered_map<std::string, std::string> kArticles = {{"the", "ol"}, {"a", "un"}, {"some", "des"}};
    const auto article = kArticles.find(word_);
    if (article == kArticles.end()) fail_word("an article");
    take();
    std::string adjective;
    const auto next = kinds_.find(word_);
    if (next != kinds_.end() && next->second == Kind::adjective) adjective = stem(Kind::adjective);
    bool plural = false;
    const std::string noun = stem(Kind::noun, &plural);
    const std::size_t gender = genders_.at(noun);
    Phrase result{article->second + " " + backwards(noun) + (plural ? "en" : ""), plural};
    static constexpr const char* kEndings[2][2] = {{"o", "os"}, {"a", "as"}};  // [gender][number]
    if (!adjective.empty()) result.text += " " + backwards(adjective) + kEndings[gender][plural ? 1 : 0];
    return result;
  }

  const std::string& source_;
  std::istringstream words_;
  std::string word_;  // the next word; "": the end
  std::unordered_map<std::string, Kind> kinds_;
  std::unordered_map<std::string, std::size_t> genders_;
};

void check(const TranslationSampleOptions& options) {
  const auto expect = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    fail_usage("etc sample", "--{}: expected {} … {}, got {}", name, least, most, value);
  };
  expect("records", options.records, 1, std::int64_t{1} << 40);
  expect("nouns", options.nouns, 2, kMostNouns);
  expect("clauses", options.clauses, 1, kMostClauses);
}

void count_words_of(const std::string& sentence, WordCounts& counts) {
  std::istringstream words(sentence);
  for (std::string word; words >> word;) ++counts[word];
}

void write_pairs(const TranslationSampleOptions& options, const std::string& name, std::int64_t pairs,
                 const std::filesystem::path& folder, const BeforeRecord& before_record, WordCounts& counts) {
  AtomicFile source(folder / (name + ".source")), target(folder / (name + ".target"));
  for (std::int64_t i = 0; i < pairs; ++i) {
    before_record();
    const std::string sentence = translation_sample_source(options, name, i);
    const std::string translation = translate_sample(options, sentence);
    count_words_of(sentence, counts);
    count_words_of(translation, counts);
    source.write(sentence + "\n");
    target.write(translation + "\n");
  }
  source.commit();
  target.commit();
}

}  // namespace

std::string translation_sample_source(const TranslationSampleOptions& options, const std::string& file,
                                      std::int64_t index) {
  const Language language(options.nouns);
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  const std::int64_t clauses = 1 + choices.below(options.clauses);
  std::string text = clause(language, choices);
  for (std::int64_t i = 1; i < clauses; ++i) text += " and " + clause(language, choices);
  return text + " .";
}

std::string translate_sample(const TranslationSampleOptions& options, const std::string& source) {
  return Translator(Language(options.nouns), source).translate();
}

void write_translation_sample(const TranslationSampleOptions& options, const std::filesystem::path& folder,
                              const BeforeRecord& before_record) {
  check(options);
  WordCounts counts;
  write_pairs(options, "train", options.records, folder, before_record, counts);
  write_pairs(options, "dev", std::max<std::int64_t>(1, options.records / 5), folder, before_record, counts);
  SubwordVocab vocab;
  vocab.pieces = make_dictionary(counts, nullptr);
  write_file_atomically(folder / "vocab.words", subword_vocab_text(vocab));
}

}  // namespace etc::data

#include "data/text/punkt_trainer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/text/punkt_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/utf8.h"

namespace etc::data {

namespace {

using punkt::Mark;

// Thresholds of NLTK 3.5.
constexpr double kAbbreviation = 0.3;
constexpr std::int64_t kRareBelow = 5;  // occurrences; a type with fewer may be a rare abbreviation
constexpr double kCollocation = 7.88;
constexpr double kStarter = 30;

// A word and its position.
struct Token {
  std::string word;
  bool starts_paragraph = false;
  bool starts_line = false;
};

// A token as the later passes see it.
struct MarkedToken {
  std::string word, type;
  Mark mark = Mark::none;

  bool breaks() const { return mark == Mark::sentence_end; }
  bool period_final() const { return word.ends_with('.'); }
  bool is_number() const { return type.starts_with(punkt::kNumberType); }
  std::string type_without_sentence_period() const { return breaks() ? punkt::without_period(type) : type; }
};

template <typename Accept>
bool all_characters(std::string_view text, Accept accept) {
  for (std::size_t at = 0; at < text.size();) {
    if (!accept(next_code_point(text, at))) return false;
  }
  return true;
}

bool is_letter(char32_t c) {  // Python's [^\W\d]
  return is_word(c) && !is_decimal(c);
}

bool has_letter(std::string_view type) {
  return !all_characters(type, [](char32_t c) { return !is_letter(c); });
}

std::int64_t code_points(std::string_view text) {
  std::int64_t count = 0;
  all_characters(text, [&](char32_t) { return ++count > 0; });
  return count;
}

// Calls visit(Token) for every word; an empty line, or another text, starts a paragraph.
template <typename Visit>
void for_each_token(const TextSource& texts, Visit&& visit) {
  bool paragraph = false;
  std::vector<std::string_view> words;
  texts([&](std::string_view text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      begin = end + 1;
      words.clear();
      if (!strip(line).empty()) punkt::split_words(line, words);
      if (words.empty()) {
        paragraph = true;
        continue;
      }
      for (std::size_t i = 0; i < words.size(); ++i) visit(Token{std::string(words[i]), paragraph && i == 0, i == 0});
      paragraph = false;
    }
    paragraph = true;
  });
}

class PunktTrainer {
 public:
  explicit PunktTrainer(const TextSource& texts) : texts_(texts) {}

  PunktTables learn() {
    count();
    if (words_ == 0) fail("punkt", "there is no word to learn from");
    find_abbreviations();
    find_context();
    find_pairs();
    find_starters();
    find_collocations();
    return std::move(tables_);
  }

 private:
  std::int64_t count_of(const std::string& type) const {
    const auto found = counts_.find(type);
    return found == counts_.end() ? 0 : found->second;
  }
  // With and without a period after it.
  std::int64_t count_of_both(const std::string& type) const { return count_of(type) + count_of(type + "."); }

  void count() {
    for_each_token(texts_, [&](const Token& token) {
      ++counts_[punkt::type_of(token.word)];
      ++words_;
      if (token.word.ends_with('.')) ++periods_;
    });
  }

  // Scores types as abbreviations: likely if a period usually follows, the type is short, contains periods, and rarely
  // occurs without a final period.
  void find_abbreviations() {
    for (const auto& [type, with_period] : counts_) {
      if (!type.ends_with('.') || type == punkt::kNumberType || !has_letter(type)) continue;
      const std::string candidate = type.substr(0, type.size() - 1);
      const auto inner_periods = static_cast<double>(std::count(candidate.begin(), candidate.end(), '.'));
      const double letters = static_cast<double>(code_points(candidate)) - inner_periods;
      const auto without_period = static_cast<double>(count_of(candidate));
      const auto with = static_cast<double>(with_period);
      const double likelihood = punkt::abbreviation_likelihood(with + without_period, static_cast<double>(periods_),
                                                               with, static_cast<double>(words_));
      const double score = likelihood * std::exp(-letters) * (inner_periods + 1) * std::pow(letters, -without_period);
      if (score >= kAbbreviation) tables_.abbreviations.insert(candidate);
    }
  }

  MarkedToken marked(const Token& token) const {
    return {token.word, punkt::type_of(token.word), punkt::first_pass(token.word, first_abbreviations_)};
  }

  // Records the letter case of each type at the beginning of sentences, in the middle, and at unknown positions.
  void find_context() {
    first_abbreviations_ = tables_.abbreviations;  // fixed, so that abbreviations added later do not change the marks
    enum Place { kInitial, kInternal, kUnknown };
    constexpr int kUpper[] = {2, 4, 8}, kLower[] = {16, 32, 64};  // bits of ortho, by place
    Place place = kInternal;
    for_each_token(texts_, [&](const Token& token) {
      if (token.starts_paragraph && place != kUnknown) place = kInitial;
      if (token.starts_line && place == kInternal) place = kUnknown;
      const MarkedToken m = marked(token);
      const char32_t first = punkt::first_character(m.word);
      const int flag = is_upper(first) ? kUpper[place] : is_lower(first) ? kLower[place] : 0;
      if (flag != 0) tables_.contexts[m.type_without_sentence_period()] |= flag;
      if (m.breaks()) {
        ++breaks_;
        place = m.is_number() || punkt::is_initial(m.word) ? kUnknown : kInitial;
      } else {
        place = m.mark == Mark::none ? kInternal : kUnknown;
      }
    });
  }

  void find_pairs() {
    MarkedToken before;
    for_each_token(texts_, [&](const Token& token) {
      MarkedToken now = marked(token);
      if (before.period_final()) take_pair(before, now);
      before = std::move(now);
    });
  }

  void take_pair(const MarkedToken& before, const MarkedToken& now) {
    if (is_rare_abbreviation(before, now)) tables_.abbreviations.insert(punkt::without_period(before.type));
    const bool number_or_initial = before.is_number() || punkt::is_initial(before.word);
    if (before.breaks() && !number_or_initial && all_characters(now.word, is_letter)) ++starters_[now.type];
    if (before.breaks() && number_or_initial && has_letter(before.type) && has_letter(now.type)) {
      ++pairs_[{punkt::without_period(before.type), now.type_without_sentence_period()}];
    }
  }

  // Whether the type is rare and the next word cannot begin a sentence.
  bool is_rare_abbreviation(const MarkedToken& before, const MarkedToken& now) const {
    if (!before.breaks()) return false;
    const std::string type = punkt::without_period(before.type);
    // Like NLTK, the second count is of the type without its last character, although the period has been removed
    // already.
    std::string shorter = type;
    while (!shorter.empty() && continues_character(shorter.back())) shorter.pop_back();
    if (!shorter.empty()) shorter.pop_back();
    if (tables_.abbreviations.contains(type) || count_of(type) + count_of(shorter) >= kRareBelow) return false;
    if (std::string_view(",:;").find(now.word[0]) != std::string_view::npos) return true;
    if (!is_lower(punkt::first_character(now.word))) return false;
    const auto context = tables_.contexts.find(now.type_without_sentence_period());
    const int bits = context == tables_.contexts.end() ? 0 : context->second;
    return (bits & ortho::kInitialUpper) != 0 && (bits & ortho::kMiddleUpper) == 0;
  }

  void find_starters() {
    const auto words = static_cast<double>(words_), breaks = static_cast<double>(breaks_);
    for (const auto& [type, at_break] : starters_) {
      const auto count = static_cast<double>(count_of_both(type)), together = static_cast<double>(at_break);
      if (count < together) continue;
      const double likelihood = punkt::collocation_likelihood(breaks, count, together, words);
      if (likelihood >= kStarter && words / breaks > count / together) tables_.starters.insert(type);
    }
  }

  void find_collocations() {
    const auto words = static_cast<double>(words_);
    for (const auto& [pair, count] : pairs_) {
      if (tables_.starters.contains(pair.second)) continue;
      const auto together = static_cast<double>(count);
      const auto first = static_cast<double>(count_of_both(pair.first));
      const auto second = static_cast<double>(count_of_both(pair.second));
      if (!(first > 1 && second > 1 && together > 1 && together <= std::min(first, second))) continue;
      const double likelihood = punkt::collocation_likelihood(first, second, together, words);
      if (likelihood >= kCollocation && words / first > second / together) {
        tables_.collocations.insert(pair.first + '\t' + pair.second);
      }
    }
  }

  const TextSource& texts_;
  std::map<std::string, std::int64_t> counts_;  // of types; sorted, so that loops are deterministic
  std::int64_t words_ = 0, periods_ = 0, breaks_ = 0;
  StringSet first_abbreviations_;
  std::map<std::string, std::int64_t> starters_;
  std::map<std::pair<std::string, std::string>, std::int64_t> pairs_;
  PunktTables tables_;
};

}  // namespace

namespace punkt {

double abbreviation_likelihood(double count, double periods, double with_period, double words) {
  const double p = periods / words, q = 0.99;
  const double without = count - with_period;
  const double null_hypothesis = with_period * std::log(p) + without * std::log(1 - p);
  const double alternative = with_period * std::log(q) + without * std::log(1 - q);
  return -2 * (null_hypothesis - alternative);
}

double collocation_likelihood(double first, double second, double both, double words) {
  // k·log p + (n−k)·log(1−p); like the reference, 0 if a logarithm would be of 0.
  const auto term = [](double k, double rest, double p) {
    return p > 0 && p < 1 ? k * std::log(p) + rest * std::log(1 - p) : 0;
  };
  const double p = second / words;
  const double p1 = both / first;
  const double p2 = words == first ? 1 : (second - both) / (words - first);
  const double others = words - first - second + both;
  const double sum = term(both, first - both, p) + term(second - both, others, p) -
                     (first == both ? 0 : term(both, first - both, p1)) -
                     (second == both ? 0 : term(second - both, others, p2));
  return -2 * sum;
}

}  // namespace punkt

PunktTables learn_punkt(const TextSource& texts) {
  return PunktTrainer(texts).learn();
}

void write_punkt_tables(const PunktTables& tables, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  if (fs::exists(folder)) fail(folder.string(), "exists already: learned tables go into a folder of their own");
  AtomicFolder tables_folder(folder, OldFiles::keep);
  const fs::path& partial = tables_folder.path();
  const auto lines_of = [](const auto& set) {
    std::vector<std::string> sorted(set.begin(), set.end());
    std::sort(sorted.begin(), sorted.end());
    std::string text;
    for (const std::string& line : sorted) text += line + "\n";
    return text;
  };
  std::vector<std::string> contexts;
  for (const auto& [type, bits] : tables.contexts) contexts.push_back(type + "\t" + std::to_string(bits));
  write_file_atomically(partial / "abbrev_types.txt", lines_of(tables.abbreviations));
  write_file_atomically(partial / "collocations.tab", lines_of(tables.collocations));
  write_file_atomically(partial / "sent_starters.txt", lines_of(tables.starters));
  write_file_atomically(partial / "ortho_context.tab", lines_of(contexts));
  tables_folder.commit();
}

}  // namespace etc::data

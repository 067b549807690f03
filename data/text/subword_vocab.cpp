#include "data/text/subword_vocab.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "data/text/bleu_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"

namespace etc::data {

namespace {

constexpr std::string_view kVersion = "#version:", kDictionary = "#dictionary";
constexpr std::int64_t kMultiple = 8;

bool is_special(std::string_view piece) {
  return std::find(kSubwordSpecials.begin(), kSubwordSpecials.end(), piece) != kSubwordSpecials.end();
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : rest_(text), where_(where) {
    if (const auto bad = invalid_utf8(text)) fail(where, "byte {} is not UTF-8", *bad);
  }

  SubwordVocab parse() {
    std::string_view line;
    if (!next(line))
      fail(where_, "expected a vocabulary of translation (#version: 0.2 or #dictionary), got an empty file");
    if (line.starts_with(kVersion)) {
      read_merges(line);
    } else if (line.starts_with(kDictionary)) {
      read_settings(line);
    } else {
      fail_line("expected #version: 0.2 (codes) or #dictionary (words)", line);
    }
    while (next(line)) read_piece(line);
    if (vocab_.pieces.empty()) fail(where_, "expected pieces behind #dictionary, got none");
    return std::move(vocab_);
  }

 private:
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }

  [[noreturn]] void fail_line(const std::string& expected, std::string_view line) const {
    constexpr std::size_t kShown = 60;
    fail(where_, "line {}: {}, got \"{}\"", number_, expected,
         std::string(line.size() > kShown ? to_utf8(to_code_points(line.substr(0, kShown))) : line));
  }

  void read_merges(std::string_view first_line) {
    const std::string_view version = strip(first_line.substr(kVersion.size()));
    if (version != "0.2") fail_line("expected codes of version 0.2 (learn them again)", first_line);
    vocab_.merges.emplace();
    for (std::string_view line; next(line);) {
      if (line.starts_with(kDictionary)) return read_settings(line);
      auto merge = merge_of_line(line);
      if (!merge) fail_line("expected a merge, two symbols with a blank between, or #dictionary", line);
      vocab_.merges->push_back(std::move(*merge));
    }
    fail(where_, "the codes end at line {} without a line #dictionary and pieces behind it", number_);
  }

  void read_settings(std::string_view line) {
    const std::string words = split_at_blanks(line.substr(kDictionary.size()));
    for (std::string_view rest = words; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (word == "words=13a" || word == "words=blanks") {
        vocab_.words = word == "words=13a" ? WordRule::rules_13a : WordRule::blanks;
      } else if (word == "case=lower" || word == "case=mixed") {
        vocab_.lower_case = word == "case=lower";
      } else {
        fail_line("expected words=13a, words=blanks, case=mixed or case=lower behind #dictionary", line);
      }
    }
  }

  void read_piece(std::string_view line) {
    const std::size_t blank = line.rfind(' ');
    std::int64_t count = -1;
    if (blank != std::string_view::npos && blank > 0) {
      const char* end = line.data() + line.size();
      const auto [stopped, error] = std::from_chars(line.data() + blank + 1, end, count);
      if (error != std::errc() || stopped != end) count = -1;
    }
    if (count < 0) fail_line("expected a piece, a blank and a count", line);
    const std::string piece(line.substr(0, blank));
    if (is_special(piece)) fail_line("the special pieces <s>, <pad>, </s> and <unk> are not listed", line);
    if (!known_.insert(piece).second) fail_line("a piece comes twice (later ids would shift)", line);
    vocab_.pieces.emplace_back(piece, count);
  }

  std::string_view rest_;
  const std::string& where_;
  std::int64_t number_ = 0;  // of the last line taken
  SubwordVocab vocab_;
  std::unordered_set<std::string> known_;
};

}  // namespace

SubwordVocab parse_subword_vocab(std::string_view text, const std::string& where) {
  return Parser(text, where).parse();
}

std::string subword_vocab_text(const SubwordVocab& vocab) {
  std::string text;
  if (vocab.merges) {
    text += "#version: 0.2\n";
    for (const auto& [first, second] : *vocab.merges) text += first + " " + second + "\n";
  }
  text += fmt::format("{} words={} case={}\n", kDictionary, vocab.words == WordRule::rules_13a ? "13a" : "blanks",
                      vocab.lower_case ? "lower" : "mixed");
  for (const auto& [piece, count] : vocab.pieces) text += piece + " " + std::to_string(count) + "\n";
  return text;
}

void for_each_subword_word(std::string_view line, WordRule rule, bool lower, const VisitWord& visit) {
  std::string lowered;
  if (lower) line = lowered = lower_case(line);
  const std::string words = rule == WordRule::rules_13a ? split_13a(line) : split_at_blanks(line);
  for (std::string_view rest = words; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    visit(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::vector<std::pair<std::string, std::int64_t>> make_dictionary(const WordCounts& words, const Bpe* merges,
                                                                  std::int64_t most) {
  std::unordered_map<std::string, std::int64_t> counts;
  std::vector<std::string> pieces;
  for (const auto& [word, count] : words) {
    pieces.clear();
    merges == nullptr ? pieces.push_back(word) : append_pieces(word, *merges, pieces);
    for (const std::string& piece : pieces) {
      if (!is_special(piece)) counts[piece] += count;
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> dictionary(counts.begin(), counts.end());
  std::sort(dictionary.begin(), dictionary.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (most > 0 && std::ssize(dictionary) > most) dictionary.resize(static_cast<std::size_t>(most));
  for (int i = 0; (std::ssize(dictionary) + std::ssize(kSubwordSpecials)) % kMultiple != 0; ++i) {
    std::string made_up = fmt::format("madeupword{:04d}", i);
    if (counts.find(made_up) == counts.end()) dictionary.emplace_back(std::move(made_up), 0);
  }
  return dictionary;
}

void append_pieces(std::string_view word, const Bpe& merges, std::vector<std::string>& pieces) {
  std::vector<std::size_t> ends;
  merges.cut(word, ends);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    std::string& piece = pieces.emplace_back(word.substr(begin, end - begin));
    if (end != word.size()) piece += kPieceGoesOn;
    begin = end;
  }
}

std::string undo_bpe(std::string_view pieces) {
  std::string text;
  text.reserve(pieces.size());
  for (std::size_t at = 0; at < pieces.size();) {
    const std::size_t mark = pieces.find(kPieceGoesOn, at);
    const std::size_t behind = mark + kPieceGoesOn.size();
    const bool goes_on = mark != std::string_view::npos && (behind == pieces.size() || pieces[behind] == ' ');
    if (mark == std::string_view::npos) {
      text.append(pieces.substr(at));
      break;
    }
    text.append(pieces.substr(at, (goes_on ? mark : mark + 1) - at));
    at = goes_on ? std::min(behind + 1, pieces.size()) : mark + 1;
  }
  return text;
}

}  // namespace etc::data

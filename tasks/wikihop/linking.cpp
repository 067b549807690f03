#include "tasks/wikihop/linking.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/utf8.h"

namespace etc::wikihop {

namespace {

constexpr std::string_view kBlank = "\u2581";  // "▁", SentencePiece's space
constexpr char kMark = '\xFF';                 // no UTF-8 text holds this byte

// The comparison keys of tokens. Pieces re-encoded by the digit-comma rule are byte strings in the reference and never
// equal to text pieces (task-wikihop, appendix B); the key of an [UNK] includes its word (Q7).
std::vector<std::string> comparison_keys(const data::Tokens& tokens, Parity parity) {
  std::vector<std::string> keys = tokens.pieces;
  if (parity == Parity::reference) {
    for (const std::int32_t i : tokens.re_encoded) keys[i] += kMark;
  } else {
    for (const auto& [i, word] : tokens.unknown_words) keys[i] += kMark + word;
  }
  return keys;
}

std::string fold(std::string_view text) {
  std::string folded = data::lower_case(text);
  constexpr std::string_view kFinalSigma = "\u03C2", kSigma = "\u03C3";
  for (std::size_t at = 0; (at = folded.find(kFinalSigma, at)) != std::string::npos; at += kSigma.size()) {
    folded.replace(at, kFinalSigma.size(), kSigma);
  }
  return folded;
}

// A sentence's case-folded letters, and the positions in them where its tokens begin and end.
struct Letters {
  std::string text;
  std::vector<std::size_t> begin, end;  // [tokens], bytes; without the token's leading space

  explicit Letters(const data::Tokens& tokens) {
    for (const std::string& piece : tokens.pieces) {
      std::string_view rest = piece;
      if (rest.starts_with(kBlank)) {
        text += ' ';
        rest.remove_prefix(kBlank.size());
      }
      begin.push_back(text.size());
      std::string letters = fold(rest);
      for (std::size_t at = 0; (at = letters.find(kBlank, at)) != std::string::npos;) {
        letters.replace(at, kBlank.size(), " ");
      }
      text += letters;
      end.push_back(text.size());
    }
  }

  // No letter or digit stands directly before this byte.
  bool begins_word(std::size_t at) const {
    if (at == 0) return true;
    std::size_t before = at - 1;
    while (before > 0 && continues_character(text[before])) --before;
    return !data::is_word(data::next_code_point(text, before));
  }
};

}  // namespace

MentionFinder::MentionFinder(const std::vector<std::string>& candidates, const std::vector<data::Tokens>& tokens,
                             Parity parity, bool sentencepiece)
    : candidates_(candidates), parity_(parity), by_letters_(sentencepiece && parity == Parity::repaired) {
  for (const data::Tokens& candidate : tokens) {
    if (by_letters_) {
      const std::string text = Letters(candidate).text;
      letters_.emplace_back(data::strip(text));
    } else {
      keys_.push_back(comparison_keys(candidate, parity));
    }
  }
}

void MentionFinder::link(std::string_view sentence, const data::Tokens& tokens, std::span<std::int64_t> links,
                         std::vector<bool>& mentioned) const {
  if (by_letters_) {
    link_letters(tokens, links, mentioned);
  } else {
    link_tokens(sentence, tokens, links, mentioned);
  }
}

void MentionFinder::link_tokens(std::string_view sentence, const data::Tokens& tokens, std::span<std::int64_t> links,
                                std::vector<bool>& mentioned) const {
  const std::string lower = data::lower_case(sentence);
  const std::vector<std::string> keys = comparison_keys(tokens, parity_);
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const std::vector<std::string>& wanted = keys_[c];
    if (candidates_[c].empty() || wanted.empty() || lower.find(candidates_[c]) == std::string::npos) continue;
    // All occurrences, including overlapping ones: the search continues one token after the last match's start.
    for (auto at = keys.begin(); (at = std::search(at, keys.end(), wanted.begin(), wanted.end())) != keys.end(); ++at) {
      std::fill_n(links.begin() + (at - keys.begin()), wanted.size(), static_cast<std::int64_t>(c));
      mentioned[c] = true;
    }
  }
}

void MentionFinder::link_letters(const data::Tokens& tokens, std::span<std::int64_t> links,
                                 std::vector<bool>& mentioned) const {
  const Letters letters(tokens);
  for (std::size_t c = 0; c < letters_.size(); ++c) {
    const std::string& wanted = letters_[c];
    if (wanted.empty()) continue;
    for (std::size_t at = letters.text.find(wanted); at != std::string::npos; at = letters.text.find(wanted, at + 1)) {
      // A token without letters (a lone "▁") begins at the same position as the next one: take the last of these.
      const auto first = std::upper_bound(letters.begin.begin(), letters.begin.end(), at);
      if (first == letters.begin.begin() || *(first - 1) != at || !letters.begins_word(at)) continue;
      const auto last = std::lower_bound(letters.end.begin(), letters.end.end(), at + wanted.size());
      if (last == letters.end.end() || *last != at + wanted.size()) continue;
      const auto from = first - 1 - letters.begin.begin(), to = last - letters.end.begin();
      std::fill(links.begin() + from, links.begin() + to + 1, static_cast<std::int64_t>(c));
      mentioned[c] = true;
    }
  }
}

}  // namespace etc::wikihop

#include "tasks/text/offset_text.h"

#include <algorithm>

#include "data/text/sentencepiece.h"
#include "data/text/unicode.h"
#include "etc_core/base/utf8.h"
#include "tasks/text/special_pieces.h"

namespace etc::text {

namespace {

constexpr std::string_view kNarrowNoBreakSpace = "\u202F";

// Bytes of the separator at `at`; 0: not a separator.
std::size_t separator_at(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == ' ' || c == '\t' || c == '\r' || c == '\n') return 1;
  return text.substr(at).starts_with(kNarrowNoBreakSpace) ? kNarrowNoBreakSpace.size() : 0;
}

// Calls visit(first byte) for every occurrence of `wanted` (not empty), continuing the search after the previous one.
template <typename Visit>
void for_each_occurrence(std::string_view text, std::string_view wanted, Visit&& visit) {
  if (wanted.empty()) return;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; at += wanted.size()) visit(at);
}

// Whether this byte lies within a word: a word character on both sides.
bool inside_word(std::string_view text, std::size_t byte) {
  if (byte == 0 || byte == text.size()) return false;
  std::size_t before = byte - 1, after = byte;
  while (before > 0 && continues_character(text[before])) --before;
  return data::is_word(data::next_code_point(text, before)) && data::is_word(data::next_code_point(text, after));
}

bool inside_word(std::string_view text, std::size_t begin, std::size_t end) {
  return inside_word(text, begin) || inside_word(text, end);
}

// For every byte of a text the index of its character.
std::vector<std::int32_t> characters_of_bytes(std::string_view text) {
  std::vector<std::int32_t> characters;
  characters.reserve(text.size());
  std::int32_t character = -1;
  for (const char c : text) {
    if (!continues_character(c)) ++character;
    characters.push_back(character);
  }
  return characters;
}

bool is_wordwise(const data::Tokenizer& tokenizer) {
  return tokenizer.kind() == std::string_view("wordpiece") || is_byte_bpe(tokenizer);
}

}  // namespace

std::vector<std::string_view> unigrams(std::string_view utf8) {
  std::vector<std::string_view> result;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t separator = separator_at(utf8, at);
    if (separator == 0) {
      ++at;
      continue;
    }
    if (at > begin) result.push_back(utf8.substr(begin, at - begin));
    begin = at += separator;
  }
  if (begin < utf8.size()) result.push_back(utf8.substr(begin));
  return result;
}

OffsetText::OffsetText(std::string_view utf8, const data::Tokenizer& tokenizer)
    : text_(utf8), by_words_(is_wordwise(tokenizer)) {
  if (!by_words_) {
    data::Tokens tokens = tokenizer.encode(utf8);
    ids_ = std::move(tokens.ids);
    pieces_ = std::move(tokens.pieces);
    return;
  }
  for (const std::string_view unigram : unigrams(utf8)) {
    const auto number = static_cast<std::int32_t>(unigram_begins_.size());
    unigram_begins_.push_back(static_cast<std::size_t>(unigram.data() - utf8.data()));
    unigram_tokens_.push_back(static_cast<std::int32_t>(ids_.size()));
    tokenizer.append_word_ids(unigram, ids_);
    token_unigrams_.resize(ids_.size(), number);
  }
}

std::int64_t OffsetText::unigram_of(std::size_t byte) const {
  return std::upper_bound(unigram_begins_.begin(), unigram_begins_.end(), byte) - unigram_begins_.begin() - 1;
}

std::vector<Occurrence> OffsetText::find(std::string_view answer, const std::vector<std::int32_t>& answer_ids,
                                         LeadingSeparator rule) const {
  return by_words_ ? find_unigrams(answer, answer_ids, rule) : find_characters(answer);
}

std::vector<Occurrence> OffsetText::find_unigrams(std::string_view answer, const std::vector<std::int32_t>& answer_ids,
                                                  LeadingSeparator rule) const {
  std::vector<Occurrence> found;
  const auto count = static_cast<std::int64_t>(unigram_begins_.size());
  if (count == 0) return found;
  for_each_occurrence(text_, answer, [&](std::size_t begin) {
    std::int64_t first = unigram_of(begin);
    std::int64_t last = unigram_of(begin + answer.size() - 1);
    if (first < 0) first = rule == LeadingSeparator::last_unigram ? count - 1 : 0;
    if (last < 0 && rule == LeadingSeparator::first_unigram) last = 0;
    const TokenSpan span = tightened(tokens_of(first, last), answer_ids);
    found.push_back({span, inside_word(text_, begin, begin + answer.size())});
  });
  return found;
}

TokenSpan OffsetText::tokens_of(std::int64_t first, std::int64_t last) const {
  const bool at_end = last + 1 == std::ssize(unigram_begins_);
  const std::int64_t end = at_end ? std::ssize(ids_) : unigram_tokens_[static_cast<std::size_t>(last + 1)];
  return {unigram_tokens_[static_cast<std::size_t>(first)], end - 1};
}

TokenSpan OffsetText::tightened(TokenSpan span, const std::vector<std::int32_t>& answer_ids) const {
  if (answer_ids.empty() || span.last < span.first) return span;
  const auto begin = ids_.begin() + span.first, end = ids_.begin() + span.last + 1;
  const auto equal = std::search(begin, end, answer_ids.begin(), answer_ids.end());
  if (equal == end) return span;
  const std::int64_t first = equal - ids_.begin();
  return {first, first + std::ssize(answer_ids) - 1};
}

std::vector<Occurrence> OffsetText::find_characters(std::string_view answer) const {
  const data::DetokenizedText searched = data::detokenize(pieces_);
  std::vector<Occurrence> found;
  std::vector<std::int32_t> characters;  // filled at the first occurrence
  for_each_occurrence(searched.text, answer, [&](std::size_t begin) {
    if (characters.empty()) characters = characters_of_bytes(searched.text);
    const auto token = [&](std::size_t byte) {
      return searched.char_to_token[static_cast<std::size_t>(characters[byte])];
    };
    const std::size_t end = begin + answer.size();
    found.push_back({{token(begin), token(end - 1)}, inside_word(searched.text, begin, end)});
  });
  return found;
}

}  // namespace etc::text

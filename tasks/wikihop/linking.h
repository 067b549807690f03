// Finds the candidates' mentions in a sentence (task-wikihop 2.6).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/wikihop/prepare_config.h"

namespace etc::wikihop {

// Finds mentions of one record's candidates by comparing tokens.
//
// reference: the sentence's tokens contain the candidate's tokens, and the lower-cased sentence contains its text. With a
// cased SentencePiece vocabulary this misses capitalised mentions (quirk Q4); any [UNK] equals any other (Q7).
// repaired: an [UNK] equals only an [UNK] of the same word; SentencePiece text is compared letter by letter with case
// folded, and a mention must begin at a token that begins a word and end at the end of a token.
class MentionFinder {
 public:
  // candidates: lower-cased texts; tokens: the tokens of each candidate. Both must outlive the finder.
  MentionFinder(const std::vector<std::string>& candidates, const std::vector<data::Tokens>& tokens, Parity parity,
                bool sentencepiece);

  // Writes the candidate's index into links[i] for every token i of a mention, candidate by candidate, so that the
  // highest index wins where mentions overlap. links [tokens of the sentence]; other elements keep their value.
  // Sets mentioned[c] [candidates] for every candidate found. Cost: O(candidates · sentence length).
  void link(std::string_view sentence, const data::Tokens& tokens, std::span<std::int64_t> links,
            std::vector<bool>& mentioned) const;

 private:
  void link_tokens(std::string_view sentence, const data::Tokens& tokens, std::span<std::int64_t> links,
                   std::vector<bool>& mentioned) const;
  void link_letters(const data::Tokens& tokens, std::span<std::int64_t> links, std::vector<bool>& mentioned) const;

  const std::vector<std::string>& candidates_;
  Parity parity_;
  bool by_letters_;
  std::vector<std::vector<std::string>> keys_;  // comparison by tokens: the keys of each candidate's tokens
  std::vector<std::string> letters_;            // comparison by letters: each candidate's case-folded text
};

}  // namespace etc::wikihop

// A text as tokens with their positions in the text, and search for answers in it (task-hotpotqa 2.2 – 2.4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/tokenizer.h"

namespace etc::text {

// The parts of a text between the five separators space, tab, CR, LF and U+202F; views of it. Other white space, such
// as a no-break space, belongs to a unigram.
std::vector<std::string_view> unigrams(std::string_view utf8);

// Positions of a sequence, both inclusive.
struct TokenSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool operator==(const TokenSpan&) const = default;
};

struct Occurrence {
  TokenSpan tokens;
  bool inside_word = false;  // a letter or digit adjoins the answer's first or last character
};

// Where an answer begins that starts with a separator at the very beginning of a text (there is no unigram there): at
// the text's last unigram, as in the reference (quirk H15), or at its first.
enum class LeadingSeparator { last_unigram, first_unigram };

// A view of the text, which must outlive it. WordPiece (here also standing for byte-level BPE): every unigram is
// tokenised on its own, as a word after a blank. SentencePiece: the text is tokenised as a whole, and answers are
// searched in the text spelled by its pieces.
class OffsetText {
 public:
  OffsetText(std::string_view utf8, const data::Tokenizer& tokenizer);

  const std::vector<std::int32_t>& ids() const { return ids_; }

  // WordPiece: the unigram of each token. SentencePiece: empty.
  const std::vector<std::int32_t>& token_unigrams() const { return token_unigrams_; }

  // WordPiece: the first token of each unigram (a unigram may have none), and the unigram of a byte of the text; for a
  // separator it is the preceding unigram, -1 at the start.
  const std::vector<std::int32_t>& unigram_tokens() const { return unigram_tokens_; }
  std::int64_t unigram_of(std::size_t byte) const;

  // WordPiece: the first tokens within the span that are equal to answer_ids; the span itself if there are none, or if
  // it ends before it begins.
  TokenSpan tightened(TokenSpan span, const std::vector<std::int32_t>& answer_ids) const;

  // WordPiece: the tokens of unigrams first … last; if these have none, the span ends before it begins.
  TokenSpan tokens_of(std::int64_t first, std::int64_t last) const;

  // The answer's occurrences: exact, case-sensitive, left to right without overlap, regardless of word borders. With
  // WordPiece a span covers whole unigrams, or within them the first tokens equal to answer_ids, if any; it may end
  // before it begins if a unigram has no token or the quirk above applies.
  std::vector<Occurrence> find(std::string_view answer, const std::vector<std::int32_t>& answer_ids,
                               LeadingSeparator rule) const;

 private:
  std::vector<Occurrence> find_unigrams(std::string_view answer, const std::vector<std::int32_t>& answer_ids,
                                        LeadingSeparator rule) const;
  std::vector<Occurrence> find_characters(std::string_view answer) const;
  std::string_view text_;
  bool by_words_;
  std::vector<std::int32_t> ids_;
  std::vector<std::string> pieces_;           // SentencePiece only
  std::vector<std::size_t> unigram_begins_;   // bytes of the text
  std::vector<std::int32_t> unigram_tokens_;  // [unigrams]
  std::vector<std::int32_t> token_unigrams_;  // [tokens]
};

}  // namespace etc::text

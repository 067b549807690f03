#include "tasks/translation/prepare_config.h"

#include <limits>

namespace etc::translation {

const char* subword_text(Subword subword) {
  static constexpr const char* kTexts[] = {"bpe", "sentencepiece", "word"};
  return kTexts[static_cast<int>(subword)];
}

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Config> kSettings{
      {"subword",
       &Config::subword,
       "bpe (a vocabulary *.bpe), sentencepiece (*.model) or word (*.words), checked against the vocabulary",
       {{"bpe", Subword::bpe}, {"sentencepiece", Subword::sentencepiece}, {"word", Subword::word}}},
      {"learned_words",
       &Config::learned_words,
       "--learn-vocab: 13a: words are split by BLEU's 13a rules; blanks: at blanks (text already tokenised)",
       {{"13a", LearnedWords::rules_13a}, {"blanks", LearnedWords::blanks}}},
      {"do_lower_case", &Config::do_lower_case, "--learn-vocab: learn from lower-cased text; the vocabulary keeps it"},
      {"max_words",
       &Config::max_words,
       "train, dev: pairs with more words (13a) on a side are dropped; 0: no limit",
       {.least = 0, .most = kMost}},
      {"max_pieces",
       &Config::max_pieces,
       "train, dev: pairs with more pieces on a side are dropped; 0: no limit",
       {.least = 0, .most = kMost}},
      {"max_length_ratio",
       &Config::max_length_ratio,
       "train, dev: pairs with a side longer than this multiple of the other, in pieces, are dropped; 0: no limit",
       {.least = 0}},
      {"max_positions",
       &Config::max_positions,
       "most pieces of a sentence with </s>: longer pairs are dropped, of a test rejected",
       {.least = 2, .most = kMost}},
      {"truncate_source", &Config::truncate_source,
       "test: cut longer source sentences to --max-positions instead of rejecting them"},
  };
  return kSettings;
}

}  // namespace etc::translation

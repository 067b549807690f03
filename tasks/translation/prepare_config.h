// The settings of translation's preparation (translation 4, 14).
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/fields.h"

namespace etc::translation {

// How words are split into pieces.
enum class Subword {
  bpe,            // byte-pair codes, *.bpe
  sentencepiece,  // a SentencePiece model, *.model
  word,           // whole words, *.words
};
const char* subword_text(Subword subword);

// How words are separated when a vocabulary is learned; stored in the vocabulary.
enum class LearnedWords { rules_13a, blanks };

struct PrepareConfig {
  Subword subword = Subword::bpe;
  LearnedWords learned_words = LearnedWords::rules_13a;
  bool do_lower_case = false;
  // For training and dev pairs; 0: no limit.
  std::int64_t max_words = 0;
  std::int64_t max_pieces = 0;
  double max_length_ratio = 0;
  std::int64_t max_positions = 1024;  // pieces of a sentence with </s>
  bool truncate_source = false;
};

const FieldList<PrepareConfig>& prepare_settings();

}  // namespace etc::translation

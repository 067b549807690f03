// Tokens without text, by their names in the different kinds of vocabularies.
#pragma once

#include <cstdint>

#include "data/text/tokenizer.h"

namespace etc::text {

struct SpecialPiece {
  const char* wordpiece;
  const char* sentencepiece;
  const char* byte_bpe;
  const char* byte_bpe_else = nullptr;  // used if there is no such piece
};

// The names in published vocabularies: BERT's, ETC's (etc-core 11), RoBERTa's; GPT-2's has one piece for all.
inline constexpr const char* kEndOfText = "<|endoftext|>";
inline constexpr SpecialPiece kPadPiece{"[PAD]", "<pad>", "<pad>", kEndOfText};
inline constexpr SpecialPiece kClsPiece{"[CLS]", "<unused_63>", "<s>", kEndOfText};
inline constexpr SpecialPiece kSepPiece{"[SEP]", "<unused_2>", "</s>", kEndOfText};

// A byte-level vocabulary has no unused pieces except those of bytes that never occur in UTF-8: C0, C1 and F5 to FF,
// written as their letters (data/text/byte_words.h). They are used for the tokens of tasks.
inline constexpr const char* kByteQuestion = "\u00C0";
inline constexpr const char* kByteParagraph = "\u00C1";
inline constexpr const char* kByteCandidate = "\u00F5";
inline constexpr const char* kByteTagOpen = "\u00F6";
inline constexpr const char* kByteTagClose = "\u00F7";

// The piece's id in a vocabulary. Throws Error naming the piece if there is none.
std::int32_t special_id(const data::Tokenizer& tokenizer, const SpecialPiece& piece);

bool is_sentencepiece(const data::Tokenizer& tokenizer);
bool is_byte_bpe(const data::Tokenizer& tokenizer);

// The form of a pair of texts on which models with such a vocabulary are trained:
//   CLS A SEP B SEP, segments 0 and 1;  byte-level (RoBERTa): CLS A SEP SEP B SEP, all of segment 0
struct PairForm {
  std::int64_t separators = 1;  // between A and B
  std::int64_t second_segment = 1;
};
PairForm pair_form(const data::Tokenizer& tokenizer);

}  // namespace etc::text

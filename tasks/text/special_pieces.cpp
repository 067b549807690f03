#include "tasks/text/special_pieces.h"

#include <string_view>

#include "etc_core/base/error.h"

namespace etc::text {

bool is_sentencepiece(const data::Tokenizer& tokenizer) {
  return tokenizer.kind() == std::string_view("sentencepiece");
}

bool is_byte_bpe(const data::Tokenizer& tokenizer) {
  return tokenizer.kind() == std::string_view("byte_bpe");
}

std::int32_t special_id(const data::Tokenizer& tokenizer, const SpecialPiece& piece) {
  if (is_sentencepiece(tokenizer)) return tokenizer.piece_id(piece.sentencepiece);
  if (!is_byte_bpe(tokenizer)) return tokenizer.piece_id(piece.wordpiece);
  if (piece.byte_bpe_else == nullptr) return tokenizer.piece_id(piece.byte_bpe);
  try {
    return tokenizer.piece_id(piece.byte_bpe);
  } catch (const Error&) {
    return tokenizer.piece_id(piece.byte_bpe_else);
  }
}

PairForm pair_form(const data::Tokenizer& tokenizer) {
  return is_byte_bpe(tokenizer) ? PairForm{2, 0} : PairForm{1, 1};
}

}  // namespace etc::text

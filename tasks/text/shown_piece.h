// The spelling of a piece that a model predicts.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "data/text/tokenizer.h"

namespace etc::text {

// A model's token table may have more rows than the vocabulary has pieces (--vocab-size). An id without a spelling is
// shown as its number in brackets.
inline std::string shown_piece(const data::Tokenizer& vocabulary, std::int64_t id) {
  if (id >= vocabulary.vocab_size()) return fmt::format("[{}]", id);
  return vocabulary.piece(static_cast<std::int32_t>(id));
}

}  // namespace etc::text

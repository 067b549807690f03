// Maps rows of a BERT or RoBERTa token table to rows of the ETC token table (pretraining 3.3). Pieces are matched by
// spelling, never by row number, which would scramble the embeddings without any error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/bert/bert_config.h"

namespace etc::convert {

// Reads the piece of every row of the source's token table.
//   vocab.txt    BERT: one piece per line
//   vocab.json   RoBERTa: {piece: row}, in the byte-level alphabet
// Rows after the last piece are left out. Throws Error naming the file when it is not valid JSON, has a piece or a row
// twice, or a row beyond `rows` or far beyond the number of pieces.
std::vector<std::string> read_source_vocabulary(const std::filesystem::path& file, std::int64_t rows);

// The row of a piece in the target vocabulary; nullopt: not found.
using FindPiece = std::function<std::optional<std::int64_t>(const std::string& piece)>;

struct VocabularyMatch {
  std::vector<std::int64_t> source_rows;  // [V]; -1: not in the source, to be initialised
  std::int64_t unmatched_targets = 0;
  std::vector<std::string> unmatched_sources;
  std::vector<std::string> specials;  // matches of special tokens: "[CLS] from <s>", …
};

// Rules: in RoBERTa's pieces, its blank U+0120 is replaced by SentencePiece's "▁" before the look-up; [CLS], [SEP],
//   [MASK] and their substitutes in the published ETC models take the rows of <s>, </s>, <mask>.
VocabularyMatch match_vocabularies(const std::vector<std::string>& source, BertKind kind, std::int64_t targets,
                                   const FindPiece& find_target);

}  // namespace etc::convert

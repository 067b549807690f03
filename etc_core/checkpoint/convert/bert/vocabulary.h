// Which row of a BERT or RoBERTa token table becomes which row of the ETC token table (pretraining 3.3): matched by the
// spelling of the piece, never by its number, which would scramble the embeddings without any error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/bert/bert_config.h"

namespace etc::convert {

// Piece of every row of the source's token table.
//   vocab.txt    BERT: one piece per line
//   vocab.json   RoBERTa: {piece: row}, in the byte-level alphabet
// Rows behind the last piece are left out. Throws Error naming the file: not valid JSON, a piece or a row twice, a row
// beyond `rows` or far beyond the number of pieces.
std::vector<std::string> read_source_vocabulary(const std::filesystem::path& file, std::int64_t rows);

// The row of a piece in the target vocabulary; none: it is not there.
using FindPiece = std::function<std::optional<std::int64_t>(const std::string& piece)>;

struct VocabularyMatch {
  std::vector<std::int64_t> source_rows;  // [V]; -1: no piece of the source, initialise
  std::int64_t unmatched_targets = 0;
  std::vector<std::string> unmatched_sources;
  std::vector<std::string> specials;  // "[CLS] from <s>", …: the pieces with a role
};

// Rules: RoBERTa's pieces are looked up with U+0120, its blank, replaced by "▁", SentencePiece's; [CLS], [SEP], [MASK]
//   and their stand-ins in the published ETC models take <s>, </s>, <mask>.
VocabularyMatch match_vocabularies(const std::vector<std::string>& source, BertKind kind, std::int64_t targets,
                                   const FindPiece& find_target);

}  // namespace etc::convert

// Functions on a translation vocabulary: its special pieces, text from pieces, and learning one (translation 4).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/base/json_fwd.h"
#include "etc_core/nn/seq2seq/config.h"
#include "tasks/translation/decode/beam_search.h"

namespace etc::translation {

// Ids of <s>, <pad>, </s>, <unk>; -1: not in the vocabulary. In *.bpe and *.words they are 0, 1, 2, 3.
struct SpecialIds {
  std::int32_t bos = -1, pad = -1, eos = -1, unk = -1;
};

// Throws Error if the vocabulary has no </s> or no <unk>.
SpecialIds special_ids(const data::Tokenizer& tokenizer);
// The same for a search. For a vocabulary without <pad>, <s> is used, which no translation contains either; -1 if it has
// neither.
SearchTokens search_tokens(const data::Tokenizer& tokenizer);
Json json_of(const SpecialIds& ids);  // {"bos", "pad", "eos", "unk"}

// The rows of a token table of the model that does not have one row for each piece, as translating needs; 0: none.
std::int64_t other_table_rows(const Seq2SeqConfig& config, const data::Tokenizer& tokenizer);

// The sentence of these pieces: byte-pair pieces joined, words separated by blanks, SentencePiece by its own rules, line ends
// as blanks. Ids of <s>, <pad> and </s> are left out.
std::string sentence_of(const data::Tokenizer& tokenizer, std::span<const std::int32_t> ids);

// Learns a joint vocabulary from all texts (*.bpe or *.words, data/text/subword_vocab.h) and writes it; size is the number of
// merges or of words. See PreparationKind::learn. Throws UsageError for a SentencePiece model, which must be trained with
// other tools, and for an output with another name; Error if a text cannot be read, or no text has a word.
void learn_vocabulary(const std::vector<std::filesystem::path>& inputs, const Json& settings, std::int64_t size,
                      const std::filesystem::path& output);

}  // namespace etc::translation

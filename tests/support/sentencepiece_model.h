// Small hand-written SentencePiece models, so that tests need neither a trainer nor a downloaded file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace etc::test {

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct ModelPiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::normal;
};

// The serialized model (a protocol buffer): unigram type, dummy prefix, blanks collapsed. `character_map` is the
// normaliser's compiled map; empty: none.
std::string sentencepiece_model(const std::vector<ModelPiece>& pieces, std::string_view character_map = {});

// A compiled character map (4 bytes of trie size, a double-array trie, replacements) with the one rule `from` → `to`.
std::string character_map(unsigned char from, const std::string& to);

// A model with the pieces <unk>, <s>, </s>, "▁", some letters and digits, "," and words with a digit and a comma.
std::string small_sentencepiece_model();

}  // namespace etc::test

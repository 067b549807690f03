// A small byte-level vocabulary: the letters of all bytes, RoBERTa's special pieces and some merges.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/byte_words.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tests/support/folders.h"

namespace etc::test {

// vocab.json: special pieces, letters, then the given pieces.
inline std::string byte_pieces(const std::vector<std::string>& more) {
  std::vector<std::string> pieces = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
  for (int byte = 0; byte < 256; ++byte) pieces.push_back(data::byte_letter(static_cast<unsigned char>(byte)));
  pieces.insert(pieces.end(), more.begin(), more.end());
  Json ids = Json::object();
  for (std::size_t id = 0; id < pieces.size(); ++id) ids[pieces[id]] = id;
  return json_line(ids);
}

// Writes vocab.json and merges.txt into the folder and loads them.
inline std::unique_ptr<data::Tokenizer> small_byte_bpe(
    const std::filesystem::path& folder,
    const std::vector<std::string>& more = {"th", "the", "\u0120th", "\u0120the", "in", "\u0120in", "er"},
    const std::string& merges = "#version: 0.2\nt h\ni n\n\u0120 th\ne r\n\u0120 in\n\u0120th e\nth e\n") {
  write_file(folder / "vocab.json", byte_pieces(more));
  write_file(folder / "merges.txt", merges);
  return data::load_tokenizer(folder / "vocab.json");
}

}  // namespace etc::test

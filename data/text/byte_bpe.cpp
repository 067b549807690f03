#include "data/text/byte_bpe.h"

#include <algorithm>

#include "data/text/byte_words.h"
#include "data/text/sha256.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 28;  // bytes; a larger file is no vocabulary
constexpr std::string_view kVersionLine = "#version";

// The beginning of a line, for messages.
std::string shown(std::string_view line) {
  constexpr std::size_t kShown = 60;
  return line.size() > kShown ? to_utf8(to_code_points(line.substr(0, kShown))) + "…" : std::string(line);
}

void require_utf8(const std::string& text, const std::string& where) {
  if (const auto bad = invalid_utf8(text)) fail(where, "byte {} is not UTF-8", *bad);
}

Json object_of(const std::string& text, const std::string& where) {
  require_utf8(text, where);
  Json json = parse_json(text, where);
  if (json.is_object() && json.contains("model") && json["model"].is_object())
    fail(where, "this is a tokenizer.json: expected vocab.json, {{\"piece\": id, …}}, with merges.txt beside it");
  if (!json.is_object() || json.empty())
    fail(where, "expected an object {{\"piece\": id, …}}, got {}", json.type_name());
  return json;
}

}  // namespace

std::filesystem::path merges_beside(const std::filesystem::path& vocab) {
  const std::string name = vocab.filename().string();
  for (const auto& [pieces, merges] : {std::pair{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}) {
    const std::string_view ending = pieces;
    if (name.ends_with(ending)) return vocab.parent_path() / (name.substr(0, name.size() - ending.size()) + merges);
  }
  return vocab.parent_path() / "merges.txt";
}

ByteBpe::ByteBpe(const std::filesystem::path& vocab) : where_(vocab.string()) {
  const std::string text = read_file(vocab, kLargestFile);
  read_pieces(text);
  const std::filesystem::path merges = merges_beside(vocab);
  if (!std::filesystem::exists(merges))
    fail(where_, "a byte-level vocabulary is two files: expected {} beside it", merges.string());
  const std::string rules = read_file(merges, kLargestFile);
  read_merges(rules, merges.string());
  bpe_ = std::make_unique<const Bpe>(merges_, "");
  find_whole_words();
  vocab_sha256_ = sha256_hex(text + rules);
}

void ByteBpe::read_pieces(const std::string& text) {
  const Json json = object_of(text, where_);
  pieces_.resize(json.size());
  std::vector<bool> taken(json.size());
  for (const auto& [piece, id] : json.items()) {
    const bool fits = id.is_number_integer() && id >= 0 && id < std::ssize(pieces_);
    if (!fits || taken[id.get<std::size_t>()]) {
      fail(where_, "\"{}\": expected an id of its own from 0 to {} (there are {} pieces), got {}", shown(piece),
           pieces_.size() - 1, pieces_.size(), shown(json_line(id)));
    }
    taken[id.get<std::size_t>()] = true;
    pieces_[id.get<std::size_t>()] = piece;
    ids_.emplace(piece, id.get<std::int32_t>());
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& letter = byte_letter(static_cast<unsigned char>(byte));
    if (find(letter) < 0)
      fail(where_, "no piece for the byte {:#04x}: expected \"{}\" (is this a byte-level vocabulary?)", byte, letter);
  }
}

void ByteBpe::read_merges(const std::string& text, const std::string& where) {
  require_utf8(text, where);
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kVersionLine) || line.empty()) continue;
    auto merge = merge_of_line(line);
    if (!merge) fail(where, "line {}: expected two pieces with a blank between, got \"{}\"", number, shown(line));
    for (const std::string& piece : {merge->first, merge->second, merge->first + merge->second}) {
      if (find(piece) < 0)
        fail(where, "line {}: {} has no piece \"{}\" (do the two files belong together?)", number, where_,
             shown(piece));
    }
    merges_.push_back(std::move(*merge));
  }
}

void ByteBpe::find_whole_words() {
  std::vector<std::size_t> ends;
  for (const std::string& piece : pieces_) {
    ends.clear();
    bpe_->cut(piece, ends);
    whole_.push_back(ends.size() == 1);
  }
}

std::int32_t ByteBpe::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? -1 : found->second;
}

std::int32_t ByteBpe::piece_id(std::string_view piece) const {
  const std::int32_t id = find(piece);
  if (id < 0) fail(where_, "the vocabulary has no piece \"{}\"", piece);
  return id;
}

// before: text before `utf8` that belongs to its first word (a blank).
void ByteBpe::append(std::string_view utf8, std::string_view before, std::vector<std::int32_t>& ids) const {
  std::string storage;
  if (!before.empty() || invalid_utf8(utf8)) {
    storage = std::string(before) + to_utf8(to_code_points(utf8));
    utf8 = storage;
  }
  std::string letters;
  std::vector<std::size_t> ends;
  for_each_byte_word(utf8, [&](std::string_view word) {
    letters = byte_letters(word);
    const std::int32_t id = find(letters);
    if (id >= 0 && whole_[static_cast<std::size_t>(id)]) return ids.push_back(id);
    ends.clear();
    bpe_->cut(letters, ends);
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      ids.push_back(find(std::string_view(letters).substr(begin, end - begin)));
      begin = end;
    }
  });
}

void ByteBpe::append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const {
  append(utf8, "", ids);
}

void ByteBpe::append_word_ids(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (!word.empty()) append(word, " ", ids);
}

Tokens ByteBpe::encode(std::string_view utf8) const {
  Tokens tokens;
  append_ids(utf8, tokens.ids);
  for (const std::int32_t id : tokens.ids) tokens.pieces.push_back(piece(id));
  return tokens;
}

}  // namespace etc::data

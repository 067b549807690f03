#include "etc_core/checkpoint/convert/bert/vocabulary.h"

#include <algorithm>
#include <array>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc::convert {

namespace {

constexpr std::uint64_t kMaxVocabularyBytes = 64 << 20;
const std::string kByteLevelBlank = "\xC4\xA0";          // U+0120: the byte 0x20 in GPT-2's alphabet
const std::string kSentencePieceBlank = "\xE2\x96\x81";  // U+2581

std::vector<std::string> read_lines(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxVocabularyBytes);
  std::vector<std::string> pieces;
  std::set<std::string> seen;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string piece = text.substr(at, end - at);
    if (!piece.empty() && piece.back() == '\r') piece.pop_back();
    if (!seen.insert(piece).second) {
      fail(file.string(), "line {}: {} comes twice (rows could not be told apart)", pieces.size() + 1, piece);
    }
    pieces.push_back(std::move(piece));
    at = end + 1;
  }
  return pieces;
}

std::vector<std::string> read_json_rows(const std::filesystem::path& file, std::int64_t rows) {
  const Json json = read_json_file(file);
  if (!json.is_object()) fail(file.string(), "expected an object of pieces and rows");
  std::vector<std::string> pieces;
  std::vector<bool> taken;
  // Few rows have no piece. A row far beyond the number of pieces would need memory out of proportion to the file.
  const std::size_t most = 2 * json.size() + 1000;
  for (const auto& [piece, row] : json.items()) {
    if (!row.is_number_integer() || row < 0 || row >= rows) {
      fail(file.string(), "{}: expected a row below {}, got {}", piece, rows, json_line(row));
    }
    const auto at = row.get<std::size_t>();
    if (at >= most) fail(file.string(), "{}: row {} in a vocabulary of {} pieces", piece, at, json.size());
    if (at >= pieces.size()) {
      pieces.resize(at + 1);
      taken.resize(at + 1);
    }
    if (taken[at]) fail(file.string(), "{} and {} have the same row {}", pieces[at], piece, at);
    taken[at] = true;
    pieces[at] = piece;
  }
  return pieces;
}

std::string with_sentencepiece_blanks(std::string piece) {
  for (std::size_t at = piece.find(kByteLevelBlank); at != std::string::npos; at = piece.find(kByteLevelBlank, at)) {
    piece.replace(at, kByteLevelBlank.size(), kSentencePieceBlank);
  }
  return piece;
}

// A special token: its piece in RoBERTa, and its possible pieces in a SentencePiece model for ETC, by name or by the
// placeholder that the published pipelines use (HotpotQA <unused_39>, NQ <unused_63> and <unused_2>).
struct Role {
  const char* source;
  std::vector<const char*> targets;
};
const std::array<Role, 3> kRoles = {{{"<s>", {"[CLS]", "<unused_63>", "<unused_39>"}},
                                     {"</s>", {"[SEP]", "<unused_2>"}},
                                     {"<mask>", {"[MASK]", "<mask>"}}}};

}  // namespace

std::vector<std::string> read_source_vocabulary(const std::filesystem::path& file, std::int64_t rows) {
  if (file.extension() == ".json") return read_json_rows(file, rows);
  std::vector<std::string> pieces = read_lines(file);
  if (static_cast<std::int64_t>(pieces.size()) > rows) {
    fail(file.string(), "{} pieces: expected at most {}, the rows of the token table", pieces.size(), rows);
  }
  return pieces;
}

VocabularyMatch match_vocabularies(const std::vector<std::string>& source, BertKind kind, std::int64_t targets,
                                   const FindPiece& find_target) {
  VocabularyMatch match;
  match.source_rows.assign(static_cast<std::size_t>(targets), -1);
  const auto assign = [&](const std::string& piece, std::int64_t row) {
    const auto target = find_target(piece);
    if (!target || *target < 0 || *target >= targets) return false;
    match.source_rows[static_cast<std::size_t>(*target)] = row;
    return true;
  };
  for (std::size_t row = 0; row < source.size(); ++row) {
    if (source[row].empty()) continue;  // a row without a piece
    const std::string piece = kind == BertKind::roberta ? with_sentencepiece_blanks(source[row]) : source[row];
    if (!assign(piece, static_cast<std::int64_t>(row))) match.unmatched_sources.push_back(source[row]);
  }
  if (kind == BertKind::roberta) {
    for (const Role& role : kRoles) {
      const auto row = std::find(source.begin(), source.end(), role.source);
      if (row == source.end()) continue;
      for (const char* target : role.targets) {
        if (assign(target, row - source.begin())) {
          match.specials.push_back(fmt::format("{} from {}", target, role.source));
          std::erase(match.unmatched_sources, role.source);
        }
      }
    }
  }
  match.unmatched_targets = std::count(match.source_rows.begin(), match.source_rows.end(), -1);
  return match;
}

}  // namespace etc::convert

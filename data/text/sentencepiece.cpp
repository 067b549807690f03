#include "data/text/sentencepiece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "data/probe.h"
#include "data/text/sentencepiece_check.h"
#include "data/text/sha256.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/utf8.h"

namespace etc::data {

namespace {

constexpr std::uint64_t kLargestModel = std::uint64_t{1} << 28;  // bytes; published models have a few million
constexpr std::string_view kBlank = "\u2581";                    // "▁"

std::string without_blanks(std::string_view piece) {
  std::string text(piece);
  for (std::size_t at = 0; (at = text.find(kBlank, at)) != std::string::npos;) text.erase(at, kBlank.size());
  return text;
}

constexpr int kBytes = 256;
constexpr std::string_view kByteBegin = "<0x";  // of the pieces "<0x00>" … "<0xFF>", which stand for bytes

// Fields of a serialised model that follow its own: a piece for each byte, and the setting byte_fallback of its trainer.
std::string byte_fallback() {
  constexpr char kByteType = 6;
  std::string fields;
  for (int byte = 0; byte < kBytes; ++byte) {
    const std::string piece = fmt::format("{}{:02X}>", kByteBegin, byte);
    std::string message = {0x0A, static_cast<char>(piece.size())};  // field 1, a string
    message += piece;
    message += {0x18, kByteType};                         // field 3, a number
    fields += {0x0A, static_cast<char>(message.size())};  // field 1 of the model, a message
    fields += message;
  }
  return fields += {0x12, 3, static_cast<char>(0x98), 0x02, 1};  // field 2, a message: its field 35 is true
}

// Whether the digit-comma rule applies: a digit, then a comma at the end.
bool ends_in_digit_comma(std::string_view piece) {
  if (piece.size() < 2 || piece.back() != ',') return false;
  std::size_t at = piece.size() - 2;  // first byte of the character before the comma
  while (at > 0 && continues_character(piece[at])) --at;
  return is_digit(next_code_point(piece, at));
}

class SentencePiece : public Tokenizer {
 public:
  SentencePiece(std::string_view bytes, std::string where, const TokenizerOptions& options)
      : where_(std::move(where)), strip_comma_prefix_(options.strip_comma_prefix) {
    load(bytes);
    unknown_ = model_.unk_id();
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      const std::string& piece = model_.IdToPiece(id);
      if (invalid_utf8(piece) || piece.find('\0') != std::string::npos) {
        fail(where_, "SentencePiece model: piece {}: expected UTF-8 without zero bytes (the file is damaged)", id);
      }
      if (!std::isfinite(model_.GetScore(id))) {
        fail(where_, "SentencePiece model: piece {}: expected a finite score, got {} (the file is damaged)", id,
             model_.GetScore(id));
      }
    }
    if (options.whole_user_pieces) choose_placeholders(user_defined_pieces(bytes, where_));
    vocab_sha256_ = sha256_hex(bytes);
  }

  Tokens encode(std::string_view utf8) const override {
    Tokens tokens;
    for_each_piece(utf8, [&](std::string_view piece, std::int32_t id, bool re_encoded) {
      if (re_encoded) tokens.re_encoded.push_back(static_cast<std::int32_t>(tokens.ids.size()));
      tokens.pieces.emplace_back(piece);
      tokens.ids.push_back(id);
    });
    return tokens;
  }

  void append_ids(std::string_view utf8, std::vector<std::int32_t>& ids) const override {
    for_each_piece(utf8, [&](std::string_view, std::int32_t id, bool) { ids.push_back(id); });
  }

  std::int32_t piece_id(std::string_view piece) const override {
    const std::int32_t id = id_of(piece);
    if (model_.IdToPiece(id) != piece) fail(where_, "the model has no piece \"{}\"", piece);
    return id;
  }

  std::int32_t vocab_size() const override { return model_.GetPieceSize() - added_bytes_; }
  std::string piece(std::int32_t id) const override { return model_.IdToPiece(id); }
  const char* kind() const override { return "sentencepiece"; }
  bool lower_case() const override { return false; }

  std::string text_of(std::span<const std::int32_t> ids) const {
    std::string text;
    const auto status = model_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) fail(where_, "the pieces have no text: {}", status.error_message());
    return text;
  }

 private:
  // The library joins neighbouring unknown characters into one piece by copying the piece so far, which takes quadratic
  // time. With byte fallback it instead lists the bytes of each, which for_each_model_piece() joins; the bytes' pieces,
  // behind all others, have no part in the segmentation.
  void load(std::string_view bytes) {
    if (bytes.find(kByteBegin) == std::string_view::npos) {
      const bool loaded = model_.LoadFromSerializedProto(std::string(bytes) + byte_fallback()).ok();
      if (loaded) added_bytes_ = kBytes;
      if (loaded) return;
    }
    const auto status = model_.LoadFromSerializedProto(bytes);
    if (!status.ok()) fail(where_, "not a usable SentencePiece model: {}", status.error_message());
  }

  // A piece that the model lacks has the id of unknown text.
  std::int32_t id_of(std::string_view piece) const {
    const std::int32_t id = model_.PieceToId(piece);
    return id < vocab_size() ? id : unknown_;
  }

  // A user-defined piece and the character that replaces it while the library encodes.
  struct Hidden {
    std::string piece, placeholder;
  };
  static constexpr char32_t kFirstPlaceholder = U'\U00100000';  // supplementary private use area B

  // User-defined pieces must be neither cut nor joined with their neighbours, but releases of the library differ:
  // 0.1.97 encodes "[CLS]" in a text as "▁[ C LS ]", 0.2.3 as "▁ [CLS]". Each is therefore replaced by a private-use
  // character that no model knows and every release keeps as it is.
  void choose_placeholders(std::vector<std::string> pieces) {
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      if (model_.IsByte(id)) return;  // byte fallback would spell a placeholder as bytes
    }
    constexpr std::size_t kMost = 4096;
    if (pieces.size() > kMost) return;
    for (std::string& piece : pieces) {
      std::string placeholder;
      append_utf8(placeholder, kFirstPlaceholder + static_cast<char32_t>(hidden_.size()));
      may_begin_[static_cast<unsigned char>(piece.front())] = true;
      hidden_.push_back({std::move(piece), std::move(placeholder)});
    }
    // The longest match first.
    std::stable_sort(hidden_.begin(), hidden_.end(),
                     [](const Hidden& a, const Hidden& b) { return a.piece.size() > b.piece.size(); });
  }

  static bool is_placeholder(char32_t c) { return c >= kFirstPlaceholder && c <= U'\U0010FFFF'; }

  // The longest user-defined piece that `text` begins with, or null.
  const Hidden* hidden_at(std::string_view text) const {
    if (!may_begin_[static_cast<unsigned char>(text.front())]) return nullptr;
    const auto found = std::find_if(hidden_.begin(), hidden_.end(),
                                    [&](const Hidden& hidden) { return text.starts_with(hidden.piece); });
    return found == hidden_.end() ? nullptr : &*found;
  }

  // The text with placeholders for user-defined pieces; unchanged if it has none, or if it contains characters of the
  // placeholders' range.
  std::string hide_pieces(std::string_view utf8) const {
    std::string text;
    for (std::size_t at = 0; at < utf8.size();) {
      if (const Hidden* found = hidden_at(utf8.substr(at))) {
        text += found->placeholder;
        at += found->piece.size();
        continue;
      }
      const std::size_t begin = at;
      if (is_placeholder(next_code_point(utf8, at))) return std::string(utf8);
      text += utf8.substr(begin, at - begin);
    }
    return text;
  }

  // Calls emit(piece, id) for the parts of a piece unknown to the library: its placeholders and the text between them.
  template <typename Emit>
  void for_each_hidden(std::string_view piece, Emit&& emit) const {
    std::size_t begin = 0;
    const auto rest = [&](std::size_t end) {
      const std::string_view text = piece.substr(begin, end - begin);
      if (!text.empty()) emit(text, id_of(text));
    };
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t character = at;
      if (!is_placeholder(next_code_point(piece, at))) continue;
      const auto hidden = std::find_if(hidden_.begin(), hidden_.end(), [&](const Hidden& h) {
        return h.placeholder == piece.substr(character, at - character);
      });
      if (hidden == hidden_.end()) continue;
      rest(character);
      emit(std::string_view(hidden->piece), id_of(hidden->piece));
      begin = at;
    }
    rest(piece.size());
  }

  // Calls emit(piece, id) for the model's own pieces of a text.
  template <typename Emit>
  void for_each_model_piece(std::string_view utf8, Emit&& emit) const {
    sentencepiece::ImmutableSentencePieceText encoded;
    const auto status = model_.Encode(hidden_.empty() ? std::string(utf8) : hide_pieces(utf8), encoded.mutable_proto());
    if (!status.ok()) fail(where_, "the SentencePiece library cannot encode a text: {}", status.error_message());
    // The reference looks up every piece again, so that unknown text that spells a reserved piece gets its id.
    std::string unknown;  // the bytes since the last other piece
    const auto finish_unknown = [&] {
      if (!unknown.empty()) for_each_hidden(unknown, emit);
      unknown.clear();
    };
    for (int i = 0; i < static_cast<int>(encoded.pieces_size()); ++i) {
      const auto piece = encoded.pieces(i);
      const auto id = static_cast<std::int32_t>(piece.id());
      if (id >= vocab_size()) {
        unknown += static_cast<char>(id - vocab_size());
        continue;
      }
      finish_unknown();
      if (id == unknown_) {
        for_each_hidden(piece.piece(), emit);
      } else {
        emit(std::string_view(piece.piece()), id);
      }
    }
    finish_unknown();
  }

  // Calls emit(piece, id, re_encoded) for the pieces after the digit-comma rule (etc-core 11.2): "▁2018," → "▁2018" and
  // ",".
  template <typename Emit>
  void for_each_piece(std::string_view utf8, Emit&& emit) const {
    for_each_model_piece(utf8, [&](std::string_view piece, std::int32_t id) {
      if (!ends_in_digit_comma(piece)) {
        emit(piece, id, false);
        return;
      }
      // Re-encoding adds a "▁" at the front. The reference meant to remove it if the piece had none, but compares text
      // with bytes, so it stays; that is the default here.
      bool strip_first = strip_comma_prefix_ && !piece.starts_with(kBlank);
      for_each_model_piece(without_blanks(piece.substr(0, piece.size() - 1)),
                           [&](std::string_view part, std::int32_t part_id) {
                             if (std::exchange(strip_first, false) && part.starts_with(kBlank)) {
                               part.remove_prefix(kBlank.size());
                               if (part.empty()) return;
                               part_id = id_of(part);
                             }
                             emit(part, part_id, true);
                           });
      emit(std::string_view(","), id_of(","), false);
    });
  }

  std::vector<Hidden> hidden_;
  std::array<bool, 256> may_begin_{};  // first bytes of user-defined pieces
  std::string where_;
  bool strip_comma_prefix_;
  std::int32_t unknown_ = 0;
  std::int32_t added_bytes_ = 0;  // pieces added by load()
  sentencepiece::SentencePieceProcessor model_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path, const TokenizerOptions& options) {
  const std::string bytes = read_file(path, kLargestModel);
  const std::string where = path.string();
  if (bytes.empty()) fail(where, "the SentencePiece model is empty");
  check_sentencepiece_bytes(bytes, where);
  run_probe("SentencePiece model", path, [&] {
    // Encodes text of several kinds, so that a model that loads but cannot encode is detected here.
    SentencePiece(bytes, where, options).encode("The model’s first words, in 2018, 1,000 \u4e2d\u00b2, \u2581 <s>");
  });
  return std::make_unique<SentencePiece>(bytes, where, options);
}

DetokenizedText detokenize(const std::vector<std::string>& pieces) {
  DetokenizedText result;
  for (std::size_t token = 0; token < pieces.size(); ++token) {
    std::string_view piece = pieces[token];
    if (token == 0 && piece.starts_with(kBlank)) piece.remove_prefix(kBlank.size());
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      const bool blank = next_code_point(piece, at) == U'\u2581';
      result.text += blank ? std::string_view(" ") : piece.substr(begin, at - begin);
      result.char_to_token.push_back(static_cast<std::int32_t>(token));
    }
  }
  return result;
}

std::string text_by_model(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  if (const auto* const model = dynamic_cast<const SentencePiece*>(&tokenizer)) return model->text_of(ids);
  fail("text of pieces", "expected a SentencePiece model, got a vocabulary of kind {}", tokenizer.kind());
}

}  // namespace etc::data

#include "tasks/library/tokenizer_impl.h"

#include "data/text/byte_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/library/entry.h"
#include "tasks/text/special_pieces.h"

namespace longetc {

namespace {

using Vocabulary = etc::data::Tokenizer;

std::string spelled(const Vocabulary& vocabulary, std::int32_t id) {
  if (id < 0 || id >= vocabulary.vocab_size())
    etc::fail_usage("tokenizer", "expected ids from 0 to {}, got {}", vocabulary.vocab_size() - 1, id);
  return vocabulary.piece(id);
}

// How a kind of vocabulary marks the beginning and end of words in its pieces.
struct Joints {
  std::string_view inside;  // before a piece that continues the word
  std::string_view blank;   // in a piece: a blank
  std::string_view more;    // at the end of a piece after which the word continues
};

Joints joints_of(std::string_view kind) {
  if (kind == "sentencepiece") return {.inside = {}, .blank = "\u2581", .more = {}};
  if (kind == "bpe") return {.inside = {}, .blank = {}, .more = "@@"};
  if (kind == "word") return {};
  return {.inside = "##", .blank = {}, .more = {}};
}

// Of pieces that are the text itself, blanks included: characters, or the letters of bytes. Of a character that lacks
// bytes nothing is left.
std::string joined_text(const Vocabulary& vocabulary, const std::int32_t* ids, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += spelled(vocabulary, ids[i]);
  if (!etc::text::is_byte_bpe(vocabulary)) return text;
  return etc::data::to_utf8(etc::data::to_code_points(etc::data::bytes_of_letters(text)));
}

std::string text_of(const Vocabulary& vocabulary, const std::int32_t* ids, std::size_t count) {
  const std::string_view kind = vocabulary.kind();
  if (kind == "byte_bpe" || kind == "characters") return joined_text(vocabulary, ids, count);
  const Joints joints = joints_of(kind);
  std::string text;
  bool joined = true;  // to the text so far
  for (std::size_t i = 0; i < count; ++i) {
    std::string piece = spelled(vocabulary, ids[i]);
    if (!joints.blank.empty()) {
      for (auto at = piece.find(joints.blank); at != std::string::npos; at = piece.find(joints.blank, at))
        piece.replace(at, joints.blank.size(), " ");
      text += piece;
      continue;
    }
    const bool inside =
        !joints.inside.empty() && piece.size() > joints.inside.size() && piece.starts_with(joints.inside);
    if (inside) piece.erase(0, joints.inside.size());
    if (!joined && !inside) text += ' ';
    joined = !joints.more.empty() && piece.size() > joints.more.size() && piece.ends_with(joints.more);
    if (joined) piece.erase(piece.size() - joints.more.size());
    text += piece;
  }
  if (!joints.blank.empty() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer::Tokenizer(const std::string& vocabulary, bool lower_case) {
  guarded([&] {
    impl_ = std::make_shared<Impl>(Impl{etc::data::load_tokenizer(vocabulary, {.do_lower_case = lower_case})});
  });
}

Tokens Tokenizer::encode(const std::vector<std::string>& texts) const {
  return guarded([&] {
    Tokens tokens;
    for (const std::string& text : texts) {
      impl_->tokenizer->append_ids(text, tokens.ids);
      tokens.offsets.push_back(std::ssize(tokens.ids));
    }
    return tokens;
  });
}

std::string Tokenizer::decode(const std::int32_t* ids, std::size_t count) const {
  return guarded([&] { return text_of(*impl_->tokenizer, ids, count); });
}

std::string Tokenizer::piece(std::int32_t id) const {
  return guarded([&] { return spelled(*impl_->tokenizer, id); });
}

std::int32_t Tokenizer::id_of(const std::string& piece) const {
  return guarded([&] { return impl_->tokenizer->piece_id(piece); });
}

std::int32_t Tokenizer::size() const {
  return impl_->tokenizer->vocab_size();
}

std::string Tokenizer::kind() const {
  return impl_->tokenizer->kind();
}

std::string Tokenizer::sha256() const {
  return impl_->tokenizer->vocab_sha256();
}

}  // namespace longetc

#include "tasks/translation/vocabulary.h"

#include <algorithm>
#include <optional>

#include "data/readers/text_lines.h"
#include "data/text/sentencepiece.h"
#include "data/text/subword_vocab.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/learn_vocabulary.h"
#include "tasks/translation/prepare_config.h"

namespace etc::translation {

namespace {

std::optional<std::int32_t> find_piece(const data::Tokenizer& tokenizer, const char* piece) {
  try {
    return tokenizer.piece_id(piece);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Visits every line of a text. A damaged end is an Error, because a vocabulary of half the text would be wrong.
void for_each_line(const std::filesystem::path& input, const std::function<void(std::string_view)>& visit) {
  data::ByteStream stream(input);
  data::TextLines text(stream);
  text.skip_byte_order_mark();
  try {
    for (std::string line; text.append(line); line.clear()) visit(data::without_line_end(line));
  } catch (const data::InputFault& fault) {
    fail(data::raw_file_text(input), "{}", fault.what());
  }
}

void check_output(const std::filesystem::path& output, Subword subword) {
  if (subword == Subword::sentencepiece) {
    fail_usage("etc prepare",
               "--learn-vocab: SentencePiece models are made by its own trainer: expected --subword bpe "
               "or word");
  }
  const std::string extension = subword == Subword::bpe ? ".bpe" : ".words";
  if (output.extension() == extension) return;
  fail_usage("etc prepare", "--output {}: expected a name that ends in {}, by which the vocabulary is known again",
             output.string(), extension);
}

}  // namespace

SpecialIds special_ids(const data::Tokenizer& tokenizer) {
  const auto id = [&](const char* piece) { return find_piece(tokenizer, piece).value_or(-1); };
  const SpecialIds ids{id("<s>"), id("<pad>"), tokenizer.piece_id("</s>"), tokenizer.piece_id("<unk>")};
  return ids;
}

SearchTokens search_tokens(const data::Tokenizer& tokenizer) {
  const SpecialIds ids = special_ids(tokenizer);
  return {ids.pad >= 0 ? ids.pad : ids.bos, ids.eos, ids.unk};
}

std::int64_t other_table_rows(const Seq2SeqConfig& config, const data::Tokenizer& tokenizer) {
  for (const std::int64_t rows : {config.vocab_size, config.target_vocabulary()}) {
    if (rows != tokenizer.vocab_size()) return rows;
  }
  return 0;
}

Json json_of(const SpecialIds& ids) {
  return {{"bos", ids.bos}, {"pad", ids.pad}, {"eos", ids.eos}, {"unk", ids.unk}};
}

std::string sentence_of(const data::Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  const SpecialIds special = special_ids(tokenizer);
  std::vector<std::int32_t> kept;
  for (const std::int32_t id : ids) {
    if (id != special.bos && id != special.pad && id != special.eos) kept.push_back(id);
  }
  if (std::string_view(tokenizer.kind()) == "sentencepiece") {
    std::string text = data::text_by_model(tokenizer, kept);
    // A model may have pieces with line ends, and a translation is one line.
    std::ranges::replace_if(
        text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
  }
  std::vector<std::string> pieces;
  for (const std::int32_t id : kept) pieces.push_back(tokenizer.piece(id));
  const std::string joined = fmt::format("{}", fmt::join(pieces, " "));
  return std::string_view(tokenizer.kind()) == "bpe" ? data::undo_bpe(joined) : joined;
}

void learn_vocabulary(const std::vector<std::filesystem::path>& inputs, const Json& settings, std::int64_t size,
                      const std::filesystem::path& output) {
  const PrepareConfig config = prepare_settings().read(settings, "etc prepare");
  check_output(output, config.subword);
  for (const auto& input : inputs) prepare::check_input(input);
  data::SubwordVocab vocab;
  vocab.words = config.learned_words == LearnedWords::blanks ? data::WordRule::blanks : data::WordRule::rules_13a;
  vocab.lower_case = config.do_lower_case;
  Progress progress("learn vocabulary", 0, "lines");
  std::int64_t lines = 0, damaged = 0;
  const data::WordCounts words = data::count_words(
      [&](const auto& visit) {
        for (const auto& input : inputs) {
          for_each_line(input, [&](std::string_view line) {
            progress.update(++lines);
            data::invalid_utf8(line) ? void(++damaged) : visit(line);
          });
        }
      },
      [&](std::string_view line, const data::VisitWord& visit) {
        data::for_each_subword_word(line, vocab.words, vocab.lower_case, visit);
      });
  progress.finish();
  if (words.empty()) fail("etc prepare", "--learn-vocab: no word in the texts: expected at least one");
  if (damaged > 0) log::warn("prepare: {} lines are not UTF-8 and nothing is learned from them", damaged);
  std::optional<data::Bpe> bpe;
  if (config.subword == Subword::bpe) {
    vocab.merges = data::learn_bpe(words, size);
    bpe.emplace(*vocab.merges);
  }
  vocab.pieces = data::make_dictionary(words, bpe ? &*bpe : nullptr, bpe ? 0 : size);
  prepare::write_learned(output, data::subword_vocab_text(vocab));
  log::info("{}: {} merges and {} pieces learned from {} lines with {} different words", output.string(),
            vocab.merges ? vocab.merges->size() : 0, vocab.pieces.size(), lines, words.size());
}

}  // namespace etc::translation

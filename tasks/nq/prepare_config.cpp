#include "tasks/nq/prepare_config.h"

#include <array>
#include <limits>

#include "etc_core/base/error.h"
#include "tasks/text/special_pieces.h"

namespace etc::nq {

namespace {

constexpr const char* kWhere = "etc prepare";
constexpr double kLargest = std::numeric_limits<std::int32_t>::max();

// Pieces by role. The roles sentence and question have fixed ids in any vocabulary (SpecialIds); only for byte-level
// vocabularies is the question looked up.
struct RoleOfPiece {
  const char* role;
  text::SpecialPiece piece;
};
constexpr std::array kSpecialPieces = {
    RoleOfPiece{"pad", text::kPadPiece},
    RoleOfPiece{"cls", text::kClsPiece},
    RoleOfPiece{"sep", text::kSepPiece},
    RoleOfPiece{"html_open", {"[unused102]", "<unused_35>", text::kByteTagOpen}},
    RoleOfPiece{"html_close", {"[unused103]", "<unused_36>", text::kByteTagClose}},
};

SpecialIds special_ids(const Json& given, const data::Tokenizer& tokenizer) {
  Json ids = json_of(SpecialIds{});
  for (const auto& [role, piece] : kSpecialPieces) {
    if (given.is_object() && given.contains(role)) continue;
    try {
      ids[role] = text::special_id(tokenizer, piece);
    } catch (const Error&) {
      const char* name = text::is_sentencepiece(tokenizer) ? piece.sentencepiece
                         : text::is_byte_bpe(tokenizer)    ? piece.byte_bpe
                                                           : piece.wordpiece;
      fail(
          kWhere,
          "vocab_special_missing: the vocabulary lacks {} for special_ids.{} (use one with unused entries, such as the "
          "uncased BERT vocabulary, or set special_ids)",
          name, role);
    }
  }
  if (text::is_byte_bpe(tokenizer)) ids["question"] = tokenizer.piece_id(text::kByteQuestion);
  ids = text::special_ids(given, ids, tokenizer.vocab_size());
  return {ids.at("pad"),        ids.at("cls"),      ids.at("sep"),     ids.at("html_open"),
          ids.at("html_close"), ids.at("sentence"), ids.at("question")};
}

GlobalTypes global_types(const Json& types) {
  const auto fits = [](const Json& type) { return type.is_number_integer() && type >= -128 && type <= 127; };
  if (!types.is_array() || types.size() != 3 || !fits(types[0]) || !fits(types[1]) || !fits(types[2])) {
    fail_usage(kWhere, "global_token_types: expected three integers from -128 to 127 (sentence, CLS, question), got {}",
               json_line(types));
  }
  return {types[0], types[1], types[2]};
}

// Checks that a length has room for the question and its special tokens.
void require_room(const char* key, std::int64_t value, std::int64_t least) {
  if (value < least) fail_usage(kWhere, "{}: expected an integer from {} to {}, got {}", key, least, kLargest, value);
}

}  // namespace

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  static const FieldList<Config> kSettings{
      {"seq_len", &Config::seq_len, "long tokens of a window (L)", {.least = 4, .most = kLargest}},
      {"global_seq_len",
       &Config::global_seq_len,
       "most global tokens of a window (G), at least question_len + 2",
       {.least = 1, .most = kLargest}},
      {"stride", &Config::stride, "word pieces from one window's start to the next", {.least = 1, .most = kLargest}},
      {"question_len", &Config::question_len, "most word pieces of the question", {.least = 0, .most = kLargest - 4}},
      {"predict_la_when_no_sa", &Config::predict_la_when_no_sa,
       "train the short answer on the long one where there is none"},
      {"is_train", &Config::is_train,
       "leave out windows as the two rates say; false, for dev and test: keep all windows"},
      {"include_unknown_rate",
       &Config::include_unknown_rate,
       "training: share kept of the windows without the document's answer",
       {.least = 0}},
      {"include_unknown_rate_for_unanswerable", &Config::include_unknown_rate_for_unanswerable,
       "training: share kept of the windows of documents without an answer; negative: four times include_unknown_rate"},
      {"sample_seed", &Config::sample_seed, "training: chooses the windows that are kept", {.least = 0}},
      {"fixed_blocks", &Config::fixed_blocks, "global tokens for blocks of long tokens instead of answer candidates"},
      {"fixed_block_size", &Config::fixed_block_size, "long tokens of a block", {.least = 1, .most = kLargest}},
      {"global_token_types", &Config::global_token_types, "type numbers of sentence, CLS and question; stored only"},
      {"input_form",
       &Config::input_form,
       "original: document_tokens; simplified: document_text; either: each record's own",
       {{"original", InputForm::original}, {"simplified", InputForm::simplified}, {"either", InputForm::either}}},
      text::parity_entry<Config>(text::kParityHelp),
      text::tokenizer_entry<Config>(),
      text::lower_case_entry<Config>(),
      text::special_ids_entry<Config>("vocabulary ids of the tokens without text, e.g. {\"html_open\": 107}"),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels) {
  PrepareConfig config = text::read_settings(prepare_settings(), settings, labels);
  require_room("seq_len", config.seq_len, config.question_len + 4);
  if (!config.fixed_blocks) require_room("global_seq_len", config.global_seq_len, config.question_len + 2);
  config.global_types = global_types(config.global_token_types);
  return config;
}

void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer) {
  config.special_ids = special_ids(config.given_special_ids, tokenizer);
}

Json json_of(const SpecialIds& ids) {
  return {{"pad", ids.pad},
          {"cls", ids.cls},
          {"sep", ids.sep},
          {"html_open", ids.html_open},
          {"html_close", ids.html_close},
          {"sentence", ids.sentence},
          {"question", ids.question}};
}

}  // namespace etc::nq

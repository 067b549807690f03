#include "tasks/nq/prepare_config.h"

#include <array>
#include <limits>
#include <string_view>

#include "etc_core/base/error.h"

namespace etc::nq {

namespace {

constexpr const char* kWhere = "etc prepare";
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

// Pieces by role; the last two roles are fixed numbers, whatever a vocabulary holds there.
struct SpecialPiece {
  const char* role;
  const char* wordpiece;
  const char* sentencepiece;
};
constexpr std::array kSpecialPieces = {
    SpecialPiece{"pad", "[PAD]", "<pad>"},
    SpecialPiece{"cls", "[CLS]", "<unused_63>"},
    SpecialPiece{"sep", "[SEP]", "<unused_2>"},
    SpecialPiece{"html_open", "[unused102]", "<unused_35>"},
    SpecialPiece{"html_close", "[unused103]", "<unused_36>"},
};

SpecialIds special_ids(const Json& settings, const data::Tokenizer& tokenizer) {
  const bool sentencepiece = tokenizer.kind() == std::string_view("sentencepiece");
  Json ids = json_of(SpecialIds{});
  const Json& given = settings.at("special_ids");
  for (const SpecialPiece& special : kSpecialPieces) {
    if (given.is_object() && given.contains(special.role)) continue;
    const char* piece = sentencepiece ? special.sentencepiece : special.wordpiece;
    try {
      ids[special.role] = tokenizer.piece_id(piece);
    } catch (const Error&) {
      fail(
          kWhere,
          "vocab_special_missing: the vocabulary lacks {} for special_ids.{} (use one with unused entries, such as the "
          "uncased BERT vocabulary, or set special_ids)",
          piece, special.role);
    }
  }
  ids = text::special_ids(settings, ids, tokenizer.vocab_size());
  return {ids.at("pad"),        ids.at("cls"),      ids.at("sep"),     ids.at("html_open"),
          ids.at("html_close"), ids.at("sentence"), ids.at("question")};
}

GlobalTypes global_types(const Json& settings) {
  const Json& types = settings.at("global_token_types");
  const auto fits = [](const Json& type) { return type.is_number_integer() && type >= -128 && type <= 127; };
  if (types.size() != 3 || !fits(types[0]) || !fits(types[1]) || !fits(types[2])) {
    fail_usage(kWhere, "global_token_types: expected three integers from -128 to 127 (sentence, CLS, question), got {}",
               json_line(types));
  }
  return {types[0], types[1], types[2]};
}

InputForm input_form(const Json& settings) {
  const std::string name = text::word_setting(settings, "input_form");
  if (name == "original") return InputForm::original;
  if (name == "simplified") return InputForm::simplified;
  fail_usage(kWhere, "input_form: expected original or simplified, got {}{}", name,
             suggestion(name, {"original", "simplified"}));
}

}  // namespace

const std::vector<prepare::Setting>& prepare_settings() {
  static const std::vector<prepare::Setting> kSettings{
      {"seq_len", 4096, "long tokens of a window (L)"},
      {"global_seq_len", 230, "most global tokens of a window (G), at least question_len + 2"},
      {"stride", 2048, "word pieces from one window's start to the next"},
      {"question_len", 32, "most word pieces of the question"},
      {"predict_la_when_no_sa", false, "train the short answer on the long one where there is none"},
      {"is_train", true, "leave out windows as the two rates say; false, for dev and test: keep all windows"},
      {"include_unknown_rate", 1.0, "training: share kept of the windows without the document's answer"},
      {"include_unknown_rate_for_unanswerable", -1.0,
       "training: the same of documents without an answer; negative: four times the other"},
      {"sample_seed", 0, "training: chooses the windows that are kept"},
      {"fixed_blocks", false, "global tokens for blocks of long tokens instead of answer candidates"},
      {"fixed_block_size", 27, "long tokens of a block"},
      {"global_token_types", Json::array({0, 1, 2}), "type numbers of sentence, CLS and question; stored only"},
      {"input_form", "original", "original: document_tokens; simplified: document_text"},
      {"parity", "repaired", "reference: the published preparation with its quirks; repaired: without"},
      {"tokenizer", "", "wordpiece or sentencepiece, checked against the vocabulary; empty: by its file name"},
      {"do_lower_case", true, "WordPiece: lower-case the text"},
      {"special_ids", Json::object(), "vocabulary ids of the tokens without text, e.g. {\"html_open\": 107}"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, const data::Tokenizer& tokenizer, bool labels_required) {
  constexpr double kAlways = std::numeric_limits<double>::max();
  PrepareConfig config;
  config.question_len = text::integer_setting(settings, "question_len", 0, kLargest - 4);
  config.seq_len = text::integer_setting(settings, "seq_len", config.question_len + 4, kLargest);
  config.fixed_blocks = text::flag_setting(settings, "fixed_blocks");
  const std::int64_t fewest = config.fixed_blocks ? 1 : config.question_len + 2;
  config.global_seq_len = text::integer_setting(settings, "global_seq_len", fewest, kLargest);
  config.stride = text::integer_setting(settings, "stride", 1, kLargest);
  config.predict_la_when_no_sa = text::flag_setting(settings, "predict_la_when_no_sa");
  config.is_train = text::flag_setting(settings, "is_train");
  config.include_unknown_rate = text::real_setting(settings, "include_unknown_rate", 0, kAlways);
  const double rate = text::real_setting(settings, "include_unknown_rate_for_unanswerable", -kAlways, kAlways);
  config.include_unknown_rate_for_unanswerable = rate < 0 ? 4 * config.include_unknown_rate : rate;
  config.sample_seed = text::integer_setting(settings, "sample_seed", 0, std::numeric_limits<std::int64_t>::max());
  config.fixed_block_size = text::integer_setting(settings, "fixed_block_size", 1, kLargest);
  config.global_types = global_types(settings);
  config.input_form = input_form(settings);
  config.parity = text::parity_setting(settings);
  config.special_ids = special_ids(settings, tokenizer);
  config.labels_required = labels_required;
  return config;
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

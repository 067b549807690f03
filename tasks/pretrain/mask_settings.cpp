#include "tasks/pretrain/mask_settings.h"

#include <limits>
#include <optional>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/pretrain/schema.h"

namespace etc::pretrain {

namespace {

// What the data say of their preparation; no value where they say nothing, or nothing that the preparation could write.
struct Prepared {
  std::optional<double> masked_lm_prob, cpc_sentence_prob;
  std::optional<bool> whole_words;
  std::optional<std::int64_t> max_predictions;  // null: instances cannot have more pieces to predict
};

std::optional<double> share(const Json& settings, const char* key) {
  const auto found = settings.find(key);
  if (found == settings.end() || !found->is_number() || *found <= 0 || *found > 1) return std::nullopt;
  return found->get<double>();
}

std::optional<std::int64_t> count(const Json& settings, const char* key) {
  const auto found = settings.find(key);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (found == settings.end() || !found->is_number_integer() || *found < 1 || *found > kMost) return std::nullopt;
  return found->get<std::int64_t>();
}

Prepared read_settings(const Json& settings) {
  Prepared result;
  result.masked_lm_prob = share(settings, "masked_lm_prob");
  result.cpc_sentence_prob = share(settings, "cpc_sentence_prob");
  const auto whole_words = settings.find("whole_word_mask");
  if (whole_words != settings.end() && whole_words->is_boolean()) result.whole_words = whole_words->get<bool>();
  const auto most = count(settings, "max_predictions_per_seq"), length = count(settings, "max_seq_length");
  if (most && length && result.masked_lm_prob && *most < number_to_mask(*length, *result.masked_lm_prob, kNoLimit)) {
    result.max_predictions = most;
  }
  return result;
}

// All examples of a data set have the same settings, so those that the thread has read last are kept.
const Prepared& prepared(const data::Example& example) {
  struct Last {
    std::string text;  // JSON
    Prepared settings;
  };
  static thread_local Last last;
  static const Prepared kUnknown;
  if (!example.contains(kSettings)) return kUnknown;
  const std::string& text = feed::text(example, kSettings);
  if (text != last.text) last = {text, read_settings(parse_json(text, "preprocess_config"))};
  return last.settings;
}

}  // namespace

MaskRules rules_of(const data::Example& example, const Options& options) {
  const Prepared& data = prepared(example);
  const MaskRules usual;
  const auto chosen = [](double given, std::optional<double> of_data, double otherwise) {
    return given > 0 ? given : of_data.value_or(otherwise);
  };
  MaskRules rules;
  rules.masked_lm_prob = chosen(options.masked_lm_prob, data.masked_lm_prob, usual.masked_lm_prob);
  rules.cpc_sentence_prob = chosen(options.cpc_sentence_prob, data.cpc_sentence_prob, usual.cpc_sentence_prob);
  rules.whole_words =
      options.whole_word_mask.is_null() ? data.whole_words.value_or(options.whole_words) : options.whole_words;
  if (options.cpc()) return rules;
  const bool another_share = rules.masked_lm_prob != data.masked_lm_prob;
  if (data.max_predictions && !another_share) rules.max_predictions = *data.max_predictions;
  if (options.max_predictions) rules.max_predictions = *options.max_predictions;
  return rules;
}

void require_followed(const data::Example& example, const Options& options, const std::string& where) {
  const std::int64_t masked = std::ssize(feed::numbers(example, "masked_positions"));
  if (masked == 0 && feed::numbers(example, "cpc_sentences").empty()) return;  // drawn by the run's settings
  const Prepared& data = prepared(example);
  const auto refuse = [&](const char* key, const auto& given, const std::string& instead) {
    fail(
        "feed",
        "{}: example {}: task.{}: {} cannot be followed, because the masks are stored with the data, {} (leave the key "
        "out, or prepare the data with it or with --dynamic-masking true)",
        where, feed::text(example, "id"), key, given, instead);
  };
  const auto drawn_with = [](const auto& value) { return fmt::format("drawn with {}", value); };
  const MaskRules usual;
  // The usual share is accepted: runs of earlier programs state it without having been given it, and must be resumable.
  const auto contradicts = [](double given, double otherwise, std::optional<double> of_data) {
    return given > 0 && given != otherwise && of_data && *of_data != given;
  };
  if (contradicts(options.masked_lm_prob, usual.masked_lm_prob, data.masked_lm_prob))
    refuse("masked_lm_prob", options.masked_lm_prob, drawn_with(*data.masked_lm_prob));
  if (!options.whole_word_mask.is_null() && data.whole_words && *data.whole_words != options.whole_words)
    refuse("whole_word_mask", options.whole_words, drawn_with(*data.whole_words));
  if (options.cpc()) {
    if (contradicts(options.cpc_sentence_prob, usual.cpc_sentence_prob, data.cpc_sentence_prob))
      refuse("cpc_sentence_prob", options.cpc_sentence_prob, drawn_with(*data.cpc_sentence_prob));
  } else if (options.max_predictions && data.masked_lm_prob && masked > *options.max_predictions) {
    refuse("max_predictions_per_seq", *options.max_predictions, fmt::format("{} here", masked));
  }
}

}  // namespace etc::pretrain

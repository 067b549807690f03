#include "tasks/openkp/prepare_config.h"

#include <limits>

namespace etc::openkp {

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  constexpr double kMostWords = 64;  // of a phrase; K·w numbers are stored per page
  static const FieldList<Config> kSettings{
      {"long_max_length", &Config::long_max_length, "most long tokens of a page (L)", {.least = 1, .most = kMost}},
      {"global_max_length", &Config::global_max_length, "most elements of a page (G)", {.least = 1, .most = kMost}},
      {"url_max_code_points", &Config::url_max_code_points, "longest url, in characters", {.least = 1, .most = kMost}},
      {"kp_max_length",
       &Config::kp_max_length,
       "words of the longest phrase the model predicts (K)",
       {.least = 1, .most = kMostWords}},
      {"fixed_block_len",
       &Config::fixed_block_len,
       "long tokens per global token instead of the page's elements; 0: elements",
       {.least = 0, .most = kMost}},
      {"dedup", &Config::dedup, "keep the valid key phrases only, and one page per url"},
      {"max_key_phrases", &Config::max_key_phrases, "most key phrases of a page", {.least = 1, .most = kMost}},
      {"first_occurrence", &Config::first_occurrence, "store where each phrase of a page occurs first"},
      text::parity_entry<Config>("reference: keep pages whose labels are all longer than kp_max_length"),
      text::tokenizer_entry<Config>(),
      text::lower_case_entry<Config>(),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels) {
  return text::read_settings(prepare_settings(), settings, labels);
}

}  // namespace etc::openkp

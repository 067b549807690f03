#include "tasks/openkp/prepare_config.h"

#include <limits>

namespace etc::openkp {

const std::vector<prepare::Setting>& prepare_settings() {
  static const std::vector<prepare::Setting> kSettings{
      {"long_max_length", 4096, "most long tokens of a page (L)"},
      {"global_max_length", 512, "most elements of a page (G)"},
      {"url_max_code_points", 1000, "longest url, in characters"},
      {"kp_max_length", 5, "words of the longest phrase the model predicts (K)"},
      {"fixed_block_len", 0, "long tokens per global token in place of the page's elements; 0: elements"},
      {"dedup", true, "keep the valid key phrases only, and one page per url"},
      {"max_key_phrases", 3, "most key phrases of a page"},
      {"first_occurrence", false, "store where each phrase of a page occurs first"},
      {"parity", "repaired", "reference: keep pages whose labels are all longer than kp_max_length"},
      {"tokenizer", "", "wordpiece or sentencepiece, checked against the vocabulary; empty: by its file name"},
      {"do_lower_case", true, "WordPiece: lower-case the text"},
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, bool labels_required) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMostWords = 64;  // of a phrase; K·w numbers are stored per page
  const auto integer = [&](const char* key, std::int64_t least, std::int64_t most) {
    return text::integer_setting(settings, key, least, most);
  };
  PrepareConfig config;
  config.long_max_length = integer("long_max_length", 1, kMost);
  config.global_max_length = integer("global_max_length", 1, kMost);
  config.url_max_code_points = integer("url_max_code_points", 1, kMost);
  config.kp_max_length = integer("kp_max_length", 1, kMostWords);
  config.fixed_block_len = integer("fixed_block_len", 0, kMost);
  config.dedup = text::flag_setting(settings, "dedup");
  config.max_key_phrases = integer("max_key_phrases", 1, kMost);
  config.first_occurrence = text::flag_setting(settings, "first_occurrence");
  config.parity = text::parity_setting(settings);
  config.labels_required = labels_required;
  return config;
}

}  // namespace etc::openkp

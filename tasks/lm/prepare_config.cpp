#include "tasks/lm/prepare_config.h"

#include <limits>

namespace etc::lm {

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Config> kSettings{
      {"segment_length",
       &Config::segment_length,
       "pieces that a segment reads: an example; the last one of a text may be shorter",
       {.least = 1, .most = kMost}},
      {"text_ends",
       &Config::text_ends,
       "texts end with their file (files), at empty lines, too (empty_lines), or with each line (lines)",
       {{"files", TextEnds::files}, {"empty_lines", TextEnds::empty_lines}, {"lines", TextEnds::lines}}},
      {"do_lower_case", &Config::do_lower_case, "WordPiece: lower-case the text"},
  };
  return kSettings;
}

}  // namespace etc::lm

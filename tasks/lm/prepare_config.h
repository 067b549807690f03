// The settings of a language model's preparation.
#pragma once

#include <cstdint>

#include "etc_core/base/fields.h"

namespace etc::lm {

// Where a text ends; no memory is carried from one text to the next.
enum class TextEnds {
  files,        // at the end of each file
  empty_lines,  // also at empty lines, which are not part of a text
  lines,        // at the end of each line; line ends are not part of a text
};

struct PrepareConfig {
  std::int64_t segment_length = 128;
  TextEnds text_ends = TextEnds::files;
  bool do_lower_case = false;
};

const FieldList<PrepareConfig>& prepare_settings();

}  // namespace etc::lm

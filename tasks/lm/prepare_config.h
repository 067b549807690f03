// The settings of a language model's preparation.
#pragma once

#include <cstdint>

#include "etc_core/base/fields.h"

namespace etc::lm {

// Where texts end: what is read after that remembers nothing of what is before.
enum class TextEnds {
  files,        // at the end of each file
  empty_lines,  // at empty lines, which are no part of a text, too
  lines,        // at the end of each line; line ends are no part of a text
};

struct PrepareConfig {
  std::int64_t segment_length = 128;
  TextEnds text_ends = TextEnds::files;
  bool do_lower_case = false;
};

const FieldList<PrepareConfig>& prepare_settings();

}  // namespace etc::lm

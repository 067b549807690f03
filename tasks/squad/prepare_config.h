// The settings of the SQuAD preparation (dense-transformer 5.1, 5.2).
#pragma once

#include <cstdint>

#include "tasks/text/settings.h"

namespace etc::squad {

struct PrepareConfig : text::CommonSettings {
  std::int64_t seq_len = 384;      // M, tokens of a window
  std::int64_t stride = 128;       // pieces from one window's start to the next
  std::int64_t question_len = 64;  // question pieces kept
  bool version_2 = false;          // questions may be impossible
  bool is_training = true;
  bool first_answer = false;

  // Whether windows get targets.
  bool trains() const { return is_training && labels_required; }
};

const FieldList<PrepareConfig>& prepare_settings();

// Throws UsageError naming key and value, also where a window has no room for text.
PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels);

// The same check once the vocabulary is known; separators: their number between question and text (text::PairForm).
void require_room_for_text(const PrepareConfig& config, std::int64_t separators);

}  // namespace etc::squad

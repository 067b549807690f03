// The settings of OpenKP's preparation (keys in task-openkp 8.3, their effects in 2).
#pragma once

#include <cstdint>
#include <string>

#include "data/text/tokenizer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::openkp {

using text::Parity;

struct PrepareConfig : text::CommonSettings {
  std::int64_t long_max_length = 4096;   // L
  std::int64_t global_max_length = 512;  // G
  std::int64_t url_max_code_points = 1000;
  std::int64_t kp_max_length = 5;    // K: words of the longest phrase the model predicts
  std::int64_t fixed_block_len = 0;  // long tokens per global token instead of page elements; 0: elements
  bool dedup = true;                 // choose the valid key phrases first, as published
  std::int64_t max_key_phrases = 3;
  bool first_occurrence = false;  // store the first occurrence of each phrase (for the max loss)
};

const FieldList<PrepareConfig>& prepare_settings();

// Throws UsageError naming key and value.
PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels);

}  // namespace etc::openkp

// The settings of HotpotQA's preparation (task-hotpotqa 8.4 lists the keys; 2 and 10 what they do).
#pragma once

#include <cstdint>
#include <vector>

#include "data/text/tokenizer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::hotpotqa {

using text::Parity;

// Vocabulary ids of the tokens that stand for no text (task-hotpotqa 2.5).
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t cls = 0;
  std::int32_t sentence = 0;
  std::int32_t question = 0;
  std::int32_t paragraph = 0;
};

// Of the published WordPiece and SentencePiece vocabularies; fixed numbers, whatever a vocabulary holds there.
SpecialIds published_special_ids(bool sentencepiece);

struct PrepareConfig {
  std::int64_t long_seq_len = 4096;
  std::int64_t global_seq_len = 256;
  bool is_training = true;  // drop records whose labels cannot be trained on
  Parity parity = Parity::repaired;
  SpecialIds special_ids;
  bool labels_required = true;
};

const std::vector<prepare::Setting>& prepare_settings();

// settings: every key of prepare_settings(). Throws UsageError naming key and value, or when tokenizer and settings do
// not go together.
PrepareConfig read_prepare_config(const Json& settings, const data::Tokenizer& tokenizer, bool labels_required);

Json json_of(const SpecialIds& ids);

}  // namespace etc::hotpotqa

// The settings of HotpotQA's preparation (keys in task-hotpotqa 8.4, their effects in 2 and 10).
#pragma once

#include <cstdint>
#include <string>

#include "data/text/tokenizer.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::hotpotqa {

using text::Parity;

// Vocabulary ids of the tokens without text (task-hotpotqa 2.5).
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t cls = 0;
  std::int32_t sentence = 0;
  std::int32_t question = 0;
  std::int32_t paragraph = 0;
};

// The ids in the published WordPiece and SentencePiece vocabularies: fixed numbers, used for any vocabulary.
SpecialIds published_special_ids(bool sentencepiece);

struct PrepareConfig : text::CommonSettings {
  std::int64_t long_seq_len = 4096;
  std::int64_t global_seq_len = 256;
  bool is_training = true;  // drop records whose labels cannot be trained on
  SpecialIds special_ids;   // of resolve_special_ids()
};

const FieldList<PrepareConfig>& prepare_settings();

// Throws UsageError naming key and value. Special ids are not resolved yet.
PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels);

// Sets special_ids: the given ids, and the published ones for the others. Throws UsageError when they do not fit the
// tokenizer.
void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer);

Json json_of(const SpecialIds& ids);

}  // namespace etc::hotpotqa

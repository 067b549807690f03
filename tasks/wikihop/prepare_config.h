// The settings of WikiHop's preparation (keys in task-wikihop 8.4, their effects in 2 and 10).
#pragma once

#include <cstdint>
#include <string>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::wikihop {

using text::Parity;

// Vocabulary ids of the global tokens, the same for both kinds of tokenizer (task-wikihop 2.5).
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t sentence = 1;
  std::int32_t question = 3;
  std::int32_t candidate = 4;
  std::int32_t paragraph = 5;
};

struct PrepareConfig : text::CommonSettings {
  std::int64_t long_seq_len = 4096;
  std::int64_t global_seq_len = 430;
  std::int64_t max_num_sentences = 200;
  Json splitter = "icu";   // a word, or an object as stored in a data set
  SpecialIds special_ids;  // of resolve_special_ids()
};

const FieldList<PrepareConfig>& prepare_settings();

// Throws UsageError naming key and value. Special ids are not resolved yet.
PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels);

// Sets special_ids: the given ids, and the defaults of SpecialIds for the others. Throws UsageError when they do not fit
// the tokenizer.
void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer);

Json json_of(const SpecialIds& ids);

}  // namespace etc::wikihop

// The settings of WikiHop's preparation (task-wikihop 8.4 lists the keys; 2 and 10 what they do).
#pragma once

#include <cstdint>
#include <vector>

#include "etc_core/base/json.h"
#include "tasks/prepare/preparation.h"

namespace etc::wikihop {

// reference: exactly the published preparation, its quirks included; repaired: without those that lose mentions
// (quirk register, task-wikihop 10).
enum class Parity { reference, repaired };

// Vocabulary ids of the global tokens, the same for both kinds of tokenizer (task-wikihop 2.5).
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t sentence = 1;
  std::int32_t question = 3;
  std::int32_t candidate = 4;
  std::int32_t paragraph = 5;
};

struct PrepareConfig {
  std::int64_t long_seq_len = 4096;
  std::int64_t global_seq_len = 430;
  std::int64_t max_num_sentences = 200;
  Parity parity = Parity::repaired;
  SpecialIds special_ids;
  bool labels_required = true;
};

const std::vector<prepare::Setting>& prepare_settings();

// settings: every key of prepare_settings(). Throws UsageError naming key and value. The keys that choose tokenizer and
// splitter (tokenizer, do_lower_case, splitter) are not part of the result.
PrepareConfig read_prepare_config(const Json& settings, bool labels_required);

// The value of a setting that must be a word; throws UsageError otherwise.
std::string word_setting(const Json& settings, const char* key);

Json json_of(const SpecialIds& ids);
const char* parity_name(Parity parity);

}  // namespace etc::wikihop

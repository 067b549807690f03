// What the tasks' preparation settings have in common: reading values, quirk parity, ids of special tokens.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/json.h"

namespace etc::text {

// reference: exactly the published preparation, its quirks included; repaired: without those that lose or falsify
// labels (quirk registers, section 10 of the task specifications).
enum class Parity { reference, repaired };

const char* parity_name(Parity parity);

// Values of a JSON object of settings. All throw UsageError "etc prepare: <key>: expected …, got …".
std::int64_t integer_setting(const Json& settings, const char* key, std::int64_t least, std::int64_t most);
double real_setting(const Json& settings, const char* key, double least, double most);
bool flag_setting(const Json& settings, const char* key);
std::string word_setting(const Json& settings, const char* key);
Parity parity_setting(const Json& settings);  // key "parity"

// `defaults`, an object name → id, with the entries of settings["special_ids"] in their place. Throws UsageError on an
// unknown name, with a suggestion, and on a value that is no id below vocab_size.
Json special_ids(const Json& settings, const Json& defaults, std::int32_t vocab_size);

// Throws UsageError unless settings["tokenizer"] is empty or the kind of tokenizer that the vocabulary holds.
void require_tokenizer(const Json& settings, const std::string& kind, const std::string& vocab);

}  // namespace etc::text

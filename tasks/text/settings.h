// What the tasks' preparation settings have in common: quirk parity, choice of the tokenizer, ids of special tokens.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/fields.h"

namespace etc::text {

// reference: exactly the published preparation, its quirks included; repaired: without those that lose or falsify
// labels (quirk registers, section 10 of the task specifications).
enum class Parity { reference, repaired };

// The keys that several preparations have, as entries of their FieldLists. Settings: a struct with these members.
template <typename Settings>
FieldEntry<Settings> tokenizer_entry() {
  return {"tokenizer", &Settings::tokenizer,
          "wordpiece or sentencepiece, checked against the vocabulary; empty: by its file name"};
}
template <typename Settings>
FieldEntry<Settings> parity_entry(const char* help) {
  return {"parity", &Settings::parity, help, {{"reference", Parity::reference}, {"repaired", Parity::repaired}}};
}
inline constexpr const char* kParityHelp = "reference: the published preparation with its quirks; repaired: without";

// `defaults`, an object name → id, with the entries of `overrides`, the setting `special_ids`, in their place. Throws
// UsageError on an unknown name, with a suggestion, and on a value that is no id below vocab_size.
Json special_ids(const Json& overrides, const Json& defaults, std::int32_t vocab_size);

// Throws UsageError unless `wanted`, the setting `tokenizer`, is empty or the kind of tokenizer that the vocabulary
// holds.
void require_tokenizer(const std::string& wanted, const std::string& kind, const std::string& vocab);

}  // namespace etc::text

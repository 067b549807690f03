// Common settings of the tasks' preparations: quirk parity, choice of the tokeniser, ids of special tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tasks/prepare/preparation.h"

namespace etc::text {

// reference: exactly the published preparation, including its quirks; repaired: without those that lose or falsify
// labels (quirk registers, section 10 of the task specifications).
enum class Parity { reference, repaired };

// Settings of every task's preparation; those of a task derive from it.
struct CommonSettings {
  Parity parity = Parity::repaired;
  std::string tokenizer;  // the required kind; empty: any
  bool do_lower_case = true;
  Json given_special_ids = Json::object();  // instead of the task's own
  bool labels_required = true;              // prepare::Labels
};

// Throws UsageError naming key and value.
template <typename Settings>
Settings read_settings(const FieldList<Settings>& keys, const Json& given, prepare::Labels labels) {
  Settings settings = keys.read(given, "etc prepare");
  settings.labels_required = labels == prepare::Labels::required;
  return settings;
}

// Keys that several preparations have, as entries of their FieldLists. Settings: a struct with these members.
template <typename Settings>
FieldEntry<Settings> tokenizer_entry() {
  return {"tokenizer", &Settings::tokenizer,
          "wordpiece, sentencepiece or byte_bpe, checked against the vocabulary; empty: by its file name"};
}
template <typename Settings>
FieldEntry<Settings> parity_entry(const char* help) {
  return {"parity", &Settings::parity, help, {{"reference", Parity::reference}, {"repaired", Parity::repaired}}};
}
template <typename Settings>
FieldEntry<Settings> lower_case_entry(const char* help = "WordPiece: lower-case the text") {
  return {"do_lower_case", &Settings::do_lower_case, help};
}
template <typename Settings>
FieldEntry<Settings> special_ids_entry(const char* help) {
  return {"special_ids", &Settings::given_special_ids, help};
}
// Limits of the multihop tasks: of all tokens, and of global indices, which are stored in 16 bits.
template <typename Settings>
FieldEntry<Settings> long_seq_len_entry() {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  return {"long_seq_len", &Settings::long_seq_len, "most long tokens of an example (L)", {.least = 1, .most = kMost}};
}
template <typename Settings>
FieldEntry<Settings> global_seq_len_entry() {
  constexpr double kMost = std::numeric_limits<std::int16_t>::max();
  return {
      "global_seq_len", &Settings::global_seq_len, "most global tokens of an example (G)", {.least = 1, .most = kMost}};
}
inline constexpr const char* kParityHelp = "reference: the published preparation with its quirks; repaired: without";

// `defaults`, an object name → id, with the entries of `overrides` (the setting `special_ids`) replacing theirs. Throws
// UsageError for an unknown name, with a suggestion, and for a value that is not an id below vocab_size.
Json special_ids(const Json& overrides, const Json& defaults, std::int32_t vocab_size);

}  // namespace etc::text

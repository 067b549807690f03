// The settings of the Natural Questions preparation (task-nq 2, 8.3 list them).
#pragma once

#include <cstdint>
#include <string>

#include "data/text/tokenizer.h"
#include "etc_core/base/json.h"
#include "tasks/prepare/preparation.h"
#include "tasks/text/settings.h"

namespace etc::nq {

using text::Parity;

// Vocabulary ids of the tokens without text (task-nq 2.1).
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t cls = 0;
  std::int32_t sep = 0;
  std::int32_t html_open = 0;
  std::int32_t html_close = 0;
  std::int32_t sentence = 1;
  std::int32_t question = 35;
};

// Numbers stored in `global_type_id`; the model does not read them.
struct GlobalTypes {
  std::int64_t sentence = 0;
  std::int64_t cls = 1;
  std::int64_t question = 2;
};

enum class InputForm { original, simplified, either };  // either: detected for each record

struct PrepareConfig : text::CommonSettings {
  std::int64_t seq_len = 4096;        // L, long tokens of a window
  std::int64_t global_seq_len = 230;  // G
  std::int64_t stride = 2048;         // pieces from one window's start to the next
  std::int64_t question_len = 32;     // question pieces kept
  bool predict_la_when_no_sa = false;
  bool is_train = true;
  // Share of the windows without an answer that is kept for training: in documents with an answer, and in those without.
  double include_unknown_rate = 1;
  double include_unknown_rate_for_unanswerable = -1;  // negative: four times the other
  std::int64_t sample_seed = 0;
  bool fixed_blocks = false;
  std::int64_t fixed_block_size = 27;
  Json global_token_types = Json::array({0, 1, 2});  // as given
  GlobalTypes global_types;
  SpecialIds special_ids;  // of resolve_special_ids()
  InputForm input_form = InputForm::original;

  double unanswerable_rate() const {
    return include_unknown_rate_for_unanswerable < 0 ? 4 * include_unknown_rate : include_unknown_rate_for_unanswerable;
  }

  // If labels are not required, the data are not for training, so every window is kept.
  bool leaves_windows_out() const { return is_train && labels_required; }
};

const FieldList<PrepareConfig>& prepare_settings();

// Throws UsageError naming key and value. Special ids are not resolved yet.
PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels);

// Sets special_ids: the given ids, and those of the vocabulary's pieces for the others. Throws UsageError on invalid ids,
// and Error naming a special piece that the vocabulary lacks.
void resolve_special_ids(PrepareConfig& config, const data::Tokenizer& tokenizer);

Json json_of(const SpecialIds& ids);

}  // namespace etc::nq

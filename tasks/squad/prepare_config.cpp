#include "tasks/squad/prepare_config.h"

#include <limits>

#include "etc_core/base/error.h"

namespace etc::squad {

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Config> kSettings{
      {"seq_len", &Config::seq_len, "long tokens of a window (L)", {.least = 4, .most = kLargest}},
      {"stride", &Config::stride, "word pieces from one window's start to the next", {.least = 1, .most = kLargest}},
      {"question_len", &Config::question_len, "most word pieces of the question", {.least = 0, .most = kLargest - 4}},
      {"version_2", &Config::version_2, "training: questions marked is_impossible have no answer (SQuAD 2.0)"},
      {"is_training", &Config::is_training, "windows get the answer's place; false, for dev and test: they get none"},
      {"first_answer", &Config::first_answer, "training: of several answers take the first; false: refuse them"},
      text::tokenizer_entry<Config>(),
      text::lower_case_entry<Config>(),
  };
  return kSettings;
}

PrepareConfig read_prepare_config(const Json& settings, prepare::Labels labels) {
  PrepareConfig config = text::read_settings(prepare_settings(), settings, labels);
  require_room_for_text(config, 1);  // any vocabulary has one at least
  return config;
}

void require_room_for_text(const PrepareConfig& config, std::int64_t separators) {
  const std::int64_t others = 2 + separators;  // CLS, the separators, and one behind the text
  if (config.seq_len > config.question_len + others) return;
  fail_usage("etc prepare",
             "seq_len: expected more than question_len + {} = {}, got {} (a window holds CLS, the question, {} "
             "separators and some text)",
             others, config.question_len + others, config.seq_len, separators == 1 ? "two" : "three");
}

}  // namespace etc::squad

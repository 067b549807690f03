#include "tasks/translation/translation_task.h"

#include "tasks/translation/score.h"

namespace etc::translation {

const TaskKind& task_kind() {
  static const TaskKind kKind{
      .keys = bleu_fields(),
      .make = nullptr,
      .score = [](const std::filesystem::path& predictions,
                  const std::vector<std::filesystem::path>& gold) { return score_files(predictions, gold, {}); },
      .score_with = score_files};
  return kKind;
}

}  // namespace etc::translation

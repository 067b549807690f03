#include "tasks/openkp/openkp_task.h"

#include "tasks/openkp/prediction_file.h"

namespace etc::openkp {

namespace {

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const PhraseMap predicted = read_predictions(predictions);
  return evaluate(predicted, read_gold(gold), predictions.string());
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{"openkp", {}, nullptr, score_files};
  return kKind;
}

}  // namespace etc::openkp

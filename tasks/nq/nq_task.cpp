#include "tasks/nq/nq_task.h"

#include "tasks/nq/prediction_file.h"

namespace etc::nq {

namespace {

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  PredictionMap predicted = read_predictions(predictions);
  const Gold annotated = read_gold(gold);
  match_ids(predicted, annotated, predictions.string());
  Json result = evaluate(predicted, annotated.documents);
  result["unannotated"] = annotated.unannotated.size();
  return result;
}

}  // namespace

const TaskKind& task_kind() {
  static const TaskKind kKind{"nq", {}, nullptr, score_files};
  return kKind;
}

}  // namespace etc::nq

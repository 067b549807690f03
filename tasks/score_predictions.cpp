#include "tasks/score_predictions.h"

#include <functional>
#include <map>

#include "etc_core/base/error.h"
#include "tasks/hotpotqa/prediction_file.h"
#include "tasks/nq/prediction_file.h"
#include "tasks/openkp/prediction_file.h"

namespace etc {

namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

Json score_hotpotqa(const fs::path& predictions, const Paths& gold) {
  return hotpotqa::evaluate(hotpotqa::read_predictions(predictions), hotpotqa::read_gold(gold));
}

Json score_nq(const fs::path& predictions, const Paths& gold) {
  nq::PredictionMap predicted = nq::read_predictions(predictions);
  const nq::Gold annotated = nq::read_gold(gold);
  nq::match_ids(predicted, annotated, predictions.string());
  Json result = nq::evaluate(predicted, annotated.documents);
  result["unannotated"] = annotated.unannotated.size();
  return result;
}

Json score_openkp(const fs::path& predictions, const Paths& gold) {
  return openkp::evaluate(openkp::read_predictions(predictions), openkp::read_gold(gold), predictions.string());
}

}  // namespace

Json evaluate_predictions(const std::string& task, const fs::path& predictions, const Paths& gold) {
  static const std::map<std::string, std::function<Json(const fs::path&, const Paths&)>> kScorers = {
      {"hotpotqa", score_hotpotqa}, {"nq", score_nq}, {"openkp", score_openkp}};
  const auto scorer = kScorers.find(task);
  if (scorer == kScorers.end()) {
    std::vector<std::string> names;
    for (const auto& [name, function] : kScorers) names.push_back(name);
    fail_usage("etc eval", "--task: expected one of {}, got {}{}", fmt::join(names, ", "), task,
               suggestion(task, names));
  }
  Json result = scorer->second(predictions, gold);
  result["task"] = task;
  return result;
}

}  // namespace etc

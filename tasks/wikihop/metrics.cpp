#include "tasks/wikihop/metrics.h"

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/text/raw_records.h"
#include "tasks/wikihop/decode.h"
#include "tasks/wikihop/head.h"

namespace etc::wikihop {

void Accuracy::add(std::int64_t predicted, std::int64_t label, const std::string& answer, const std::string& gold,
                   double loss) {
  ++answers_;
  if (normalised_answer(answer) == normalised_answer(gold)) ++right_string_;
  if (label < 0) return;
  ++examples_;
  if (predicted == label) ++right_index_;
  loss_ += loss;
}

Metrics Accuracy::metrics() const {
  if (answers_ == 0) return {};
  const auto n = static_cast<double>(examples_);
  const double strings = static_cast<double>(right_string_) / static_cast<double>(answers_ + missing_);
  if (examples_ == 0) return {{"string_accuracy", strings}, {"examples", n}};
  return {{"accuracy", static_cast<double>(right_index_) / n},
          {"string_accuracy", strings},
          {"loss", loss_ / (n + kLossEpsilon)},
          {"examples", n}};
}

Json score_predictions(const std::map<std::string, std::string>& predictions,
                       const std::map<std::string, std::string>& gold) {
  if (gold.empty()) fail("eval", "the gold files have no answers to compare with");
  std::int64_t right = 0, missing = 0;
  for (const auto& [id, answer] : gold) {
    const auto found = predictions.find(id);
    if (found == predictions.end()) {
      ++missing;
    } else if (normalised_answer(found->second) == normalised_answer(answer)) {
      ++right;
    }
  }
  const std::int64_t unknown = std::ssize(predictions) - (std::ssize(gold) - missing);
  if (unknown > 0) log::warn("{} predictions are of no record of the gold files: not counted", unknown);
  return {{"metrics", {{"string_accuracy", static_cast<double>(right) / static_cast<double>(gold.size())}}},
          {"missing", missing},
          {"records", gold.size()}};
}

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const Json json = parse_json(read_file(predictions), predictions.string());
  const text::JsonField file(json, predictions.string());
  file.require_object();
  std::map<std::string, std::string> answers;
  for (const auto& [id, value] : json.items()) answers[id] = file.member(id).string();
  std::map<std::string, std::string> gold_answers;
  text::IdPlaces ids;
  for (const auto& path : gold) {
    text::for_each_record(path, data::RecordLayout::array, [&](const text::JsonField& record) {
      const std::string& id = record.member("id").string();
      ids.add(id, record);
      gold_answers[id] = record.member("answer").string();
    });
  }
  return score_predictions(answers, gold_answers);
}

}  // namespace etc::wikihop

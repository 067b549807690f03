#include "tasks/wikihop/metrics.h"

#include "data/readers/json_record.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/wikihop/decode.h"
#include "tasks/wikihop/head.h"

namespace etc::wikihop {

void Accuracy::add(std::int64_t predicted, std::int64_t label, const std::string& answer, const std::string& gold,
                   double loss) {
  ++examples_;
  if (predicted == label) ++right_index_;
  if (normalised_answer(answer) == normalised_answer(gold)) ++right_string_;
  loss_ += loss;
}

Metrics Accuracy::metrics() const {
  if (examples_ == 0) return {};
  const auto n = static_cast<double>(examples_);
  return {{"accuracy", static_cast<double>(right_index_) / n},
          {"string_accuracy", static_cast<double>(right_string_) / n},
          {"loss", loss_ / (n + kLossEpsilon)},
          {"examples", n}};
}

Metrics score_predictions(const std::map<std::string, std::string>& predictions,
                          const std::map<std::string, std::string>& gold) {
  if (gold.empty()) fail("eval", "the gold file has no answers to compare with");
  std::int64_t right = 0, missing = 0;
  for (const auto& [id, answer] : gold) {
    const auto found = predictions.find(id);
    if (found == predictions.end()) {
      ++missing;
    } else if (normalised_answer(found->second) == normalised_answer(answer)) {
      ++right;
    }
  }
  const auto n = static_cast<double>(gold.size());
  return {
      {"string_accuracy", static_cast<double>(right) / n}, {"missing", static_cast<double>(missing)}, {"examples", n}};
}

Metrics score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold) {
  const Json json = read_json_file(predictions);
  if (!json.is_object()) fail(predictions.string(), "expected a JSON object id → answer, got {}", json.type_name());
  std::map<std::string, std::string> answers;
  for (const auto& [id, answer] : json.items()) {
    if (!answer.is_string()) fail(predictions.string(), "{}: expected a string, got {}", id, answer.dump());
    answers[id] = answer;
  }
  std::map<std::string, std::string> gold_answers;
  for (const auto& path : gold) {
    data::ByteStream stream(path);
    data::RecordSlicer slicer(stream, data::RecordLayout::array);
    for (data::RecordSlice slice; slicer.next(slice);) {
      const Json record = data::parse_record(slice).value;
      const auto text = [&](const char* key) {
        const bool there = record.is_object() && record.contains(key) && record[key].is_string();
        if (!there) fail(path.string(), "record {}: expected a string {}", slice.index, key);
        return record[key].get<std::string>();
      };
      gold_answers[text("id")] = text("answer");
    }
  }
  return score_predictions(answers, gold_answers);
}

}  // namespace etc::wikihop

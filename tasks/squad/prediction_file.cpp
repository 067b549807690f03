#include "tasks/squad/prediction_file.h"

#include <limits>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/text/raw_records.h"

namespace etc::squad {

PredictionMap read_predictions(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path), path.string());
  const text::JsonField file(json, path.string());
  file.require_object();
  PredictionMap predictions;
  for (const auto& [id, value] : json.items()) predictions[id] = file.member(id).string();
  return predictions;
}

NullOdds read_null_odds(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path), path.string());
  const text::JsonField file(json, path.string());
  file.require_object();
  NullOdds odds;
  for (const auto& [id, value] : json.items()) {
    odds[id] = value.is_null() ? std::numeric_limits<double>::infinity() : file.member(id).number();
  }
  return odds;
}

Gold read_gold(const std::vector<std::filesystem::path>& paths) {
  Gold gold;
  text::IdPlaces ids;
  for (const auto& path : paths) {
    text::for_each_record(path, data::RecordLayout::questions, [&](const text::JsonField& record) {
      const text::JsonField unnamed = record.member("question");
      GoldQuestion question;
      question.id = unnamed.member("id").string();
      ids.add(question.id, record);
      const text::JsonField named = unnamed.named(record.where() + ": id " + question.id);
      const text::JsonField answers = named.member("answers");
      for (std::size_t i = 0; i < answers.size(); ++i) {
        question.answers.push_back(answers.element(i).member("text").string());
      }
      if (named.optional_member("is_impossible")) gold.version = Version::v2_0;
      gold.questions.push_back(std::move(question));
    });
  }
  text::require_gold(!gold.questions.empty(), paths, "question");
  return gold;
}

void require_known_ids(const PredictionMap& predictions, const Gold& gold, const std::string& where) {
  constexpr std::size_t kShown = 5;
  std::set<std::string> known;
  for (const GoldQuestion& question : gold.questions) known.insert(question.id);
  std::vector<std::string> unknown;
  for (const auto& [id, text] : predictions) {
    if (!known.contains(id)) unknown.push_back(id);
  }
  if (unknown.empty()) return;
  const std::size_t count = unknown.size();
  unknown.resize(std::min(count, kShown));
  fail(where, "{} predictions for questions that the gold files lack: {}{} (are they of another data set?)", count,
       fmt::join(unknown, ", "), count > kShown ? ", …" : "");
}

}  // namespace etc::squad

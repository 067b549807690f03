#include "tasks/hotpotqa/metrics.h"

#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/text/answer_text.h"

namespace etc::hotpotqa {

namespace {

bool is_special(std::string_view answer) {
  return answer == "yes" || answer == "no" || answer == "noanswer";
}

double harmonic_mean(double precision, double recall) {
  return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

void accumulate(Score& sum, const Score& score) {
  sum.em += score.em;
  sum.f1 += score.f1;
  sum.precision += score.precision;
  sum.recall += score.recall;
}

}  // namespace

Score answer_score(std::string_view prediction, std::string_view gold) {
  const std::string ours = text::normalised_answer(prediction), theirs = text::normalised_answer(gold);
  const bool equal = ours == theirs;
  Score score;
  score.em = equal ? 1 : 0;
  if (!equal && (is_special(ours) || is_special(theirs))) return score;
  const text::WordOverlap overlap = text::word_overlap(ours, theirs);
  score.f1 = overlap.f1;
  score.precision = overlap.precision;
  score.recall = overlap.recall;
  return score;
}

Score supporting_fact_score(const std::vector<SupportingFact>& prediction, const std::vector<SupportingFact>& gold) {
  const std::set<SupportingFact> ours(prediction.begin(), prediction.end()), theirs(gold.begin(), gold.end());
  double shared = 0;
  for (const SupportingFact& fact : ours) shared += theirs.contains(fact) ? 1 : 0;
  Score score;
  score.em = ours == theirs ? 1 : 0;
  score.precision = ours.empty() ? 0 : shared / static_cast<double>(ours.size());
  score.recall = theirs.empty() ? 0 : shared / static_cast<double>(theirs.size());
  score.f1 = harmonic_mean(score.precision, score.recall);
  return score;
}

Score joint_score(const Score& answer, const Score& facts) {
  Score joint;
  joint.em = answer.em * facts.em;
  joint.precision = answer.precision * facts.precision;
  joint.recall = answer.recall * facts.recall;
  joint.f1 = harmonic_mean(joint.precision, joint.recall);
  return joint;
}

RecordScores score(const GoldRecord& gold, const std::string* answer, const std::vector<SupportingFact>* facts) {
  RecordScores scores;
  if (answer != nullptr) scores.answer = answer_score(*answer, gold.answer);
  if (facts != nullptr) scores.facts = supporting_fact_score(*facts, gold.supporting_facts);
  if (scores.answer && scores.facts) scores.joint = joint_score(*scores.answer, *scores.facts);
  return scores;
}

void ScoreSum::add(const RecordScores& scores) {
  ++records_;
  if (scores.answer) accumulate(answer_, *scores.answer);
  if (scores.facts) accumulate(facts_, *scores.facts);
  if (scores.joint) accumulate(joint_, *scores.joint);
}

std::map<std::string, double> ScoreSum::means() const {
  std::map<std::string, double> means;
  const auto n = static_cast<double>(records_);
  const auto put = [&](const std::string& prefix, const Score& sum) {
    means[prefix + "em"] = sum.em / n;
    means[prefix + "f1"] = sum.f1 / n;
    means[prefix + "prec"] = sum.precision / n;
    means[prefix + "recall"] = sum.recall / n;
  };
  put("", answer_);
  put("sp_", facts_);
  put("joint_", joint_);
  return means;
}

void Confusion::add(std::string_view prediction, std::string_view gold) {
  const std::string ours = text::normalised_answer(prediction), theirs = text::normalised_answer(gold);
  const char gold_kind = theirs == "yes" ? 'Y' : theirs == "no" ? 'N' : 'A';
  char kind = 'A';
  if (ours == "yes") {
    kind = 'Y';
  } else if (ours == "no") {
    kind = 'N';
  } else if (ours.empty()) {
    kind = 'E';
  } else if (gold_kind == 'A' && ours != theirs) {
    kind = 'B';
  }
  if (gold_kind == 'A' && ours == theirs) kind = 'A';  // two empty answers match, too
  ++counts_[fmt::format("{}_{}", gold_kind, kind)];
  ++gold_kinds_[gold_kind];
}

Json Confusion::counts() const {
  return counts_;
}

Json Confusion::shares() const {
  Json shares = Json::object();
  for (const auto& [pair, count] : counts_) {
    shares[pair] = static_cast<double>(count) / static_cast<double>(gold_kinds_.at(pair[0]));
  }
  return shares;
}

Json evaluate(const PredictionSet& predictions, const std::vector<GoldRecord>& gold) {
  if (gold.empty()) fail("eval", "the gold file has no record to compare with");
  ScoreSum sum;
  Confusion confusion;
  Json no_answer = Json::array(), no_facts = Json::array(), unknown = Json::array();
  std::set<std::string> known;
  for (const GoldRecord& record : gold) {
    known.insert(record.id);
    const auto answer = predictions.answers.find(record.id);
    const auto facts = predictions.supporting_facts.find(record.id);
    const bool answered = answer != predictions.answers.end();
    const bool supported = facts != predictions.supporting_facts.end();
    if (!answered) no_answer.push_back(record.id);
    if (!supported) no_facts.push_back(record.id);
    if (answered) confusion.add(answer->second, record.answer);
    sum.add(score(record, answered ? &answer->second : nullptr, supported ? &facts->second : nullptr));
  }
  std::set<std::string> predicted;
  for (const auto& [id, answer] : predictions.answers) predicted.insert(id);
  for (const auto& [id, facts] : predictions.supporting_facts) predicted.insert(id);
  for (const std::string& id : predicted) {
    if (!known.contains(id)) unknown.push_back(id);
  }
  return {{"metrics", sum.means()},
          {"records", sum.records()},
          {"confusion", {{"counts", confusion.counts()}, {"shares", confusion.shares()}}},
          {"missing_answers", no_answer},
          {"missing_supporting_facts", no_facts},
          {"unknown_ids", unknown}};
}

}  // namespace etc::hotpotqa

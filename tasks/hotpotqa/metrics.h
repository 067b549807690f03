// The official HotpotQA scores: answers, supporting facts and both together (task-hotpotqa 6).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/json_fwd.h"

namespace etc::hotpotqa {

struct SupportingFact {
  std::string title;
  std::int64_t sentence = 0;
  auto operator<=>(const SupportingFact&) const = default;
};

// Exact match, F1, precision and recall of one prediction or their means.
struct Score {
  double em = 0, f1 = 0, precision = 0, recall = 0;
};

// Word overlap of the normalised answers; if one of them is yes, no or noanswer, only equality counts.
Score answer_score(std::string_view prediction, std::string_view gold);

// Two sets compared exactly; repeated facts count once.
Score supporting_fact_score(const std::vector<SupportingFact>& prediction, const std::vector<SupportingFact>& gold);

// P = P_answer·P_facts, R = R_answer·R_facts, F1 = 2PR/(P+R), EM = EM_answer·EM_facts.
Score joint_score(const Score& answer, const Score& facts);

struct GoldRecord {
  std::string id;
  std::string answer;
  std::vector<SupportingFact> supporting_facts;
};

// The contents of a prediction file; a record may be missing in either part.
struct PredictionSet {
  std::map<std::string, std::string> answers;
  std::map<std::string, std::vector<SupportingFact>> supporting_facts;
};

// Scores of one gold record; a part without a prediction has no score, and the joint score needs both parts.
struct RecordScores {
  std::optional<Score> answer, facts, joint;
};
RecordScores score(const GoldRecord& gold, const std::string* answer, const std::vector<SupportingFact>* facts);

// Sums over the gold records in the order of the calls.
class ScoreSum {
 public:
  void add(const RecordScores& scores);
  std::int64_t records() const { return records_; }

  // The twelve official numbers: em, f1, prec, recall, sp_em, …, joint_recall; each sum divided by the number of
  // records, so that a missing prediction counts 0. At least one record.
  std::map<std::string, double> means() const;

 private:
  std::int64_t records_ = 0;
  Score answer_, facts_, joint_;
};

// Counts of predicted kinds of answer per kind of gold answer (task-hotpotqa 6.6), for example "A_B": gold is neither yes
// nor no, and a different non-empty answer was predicted. Holds only pairs that occur.
class Confusion {
 public:
  void add(std::string_view prediction, std::string_view gold);
  Json counts() const;
  Json shares() const;  // relative to the gold kind

 private:
  std::map<std::string, std::int64_t> counts_;
  std::map<char, std::int64_t> gold_kinds_;
};

// Everything above for one prediction file: "metrics" (the twelve), "records", "confusion" (over the answered records),
// "missing_answers", "missing_supporting_facts" (ids that score 0) and "unknown_ids" (predictions without gold,
// ignored). Throws Error without gold records.
Json evaluate(const PredictionSet& predictions, const std::vector<GoldRecord>& gold);

}  // namespace etc::hotpotqa

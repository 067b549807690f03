// Prediction, null-odds and gold files of SQuAD in their official forms (dense-transformer 5.4, 5.6).
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/squad/metrics.h"

namespace etc::squad {

// {id: text}. Throws Error naming file and id.
PredictionMap read_predictions(const std::filesystem::path& path);

// {id: number, or null for infinity}. Throws Error naming file and id.
NullOdds read_null_odds(const std::filesystem::path& path);

struct Gold {
  std::vector<GoldQuestion> questions;
  Version version = Version::v1_1;  // 2.0 where a question says whether it is impossible
};

// All questions of raw files, in order. Throws Error naming file, record and field, also on a repeated id.
Gold read_gold(const std::vector<std::filesystem::path>& paths);

// Throws Error listing up to five predicted ids that no gold question has.
void require_known_ids(const PredictionMap& predictions, const Gold& gold, const std::string& where);

}  // namespace etc::squad

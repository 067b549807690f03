// Prediction files and gold answers of HotpotQA in their official forms (task-hotpotqa 1.1, 5.4, 9).
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/hotpotqa/metrics.h"
#include "tasks/text/json_field.h"

namespace etc::hotpotqa {

// {"answer": {id: text}, "sp": {id: [[title, sentence number], …]}}. Throws Error naming file, id and element if the file
// is not an object with both members, an id is repeated, an answer is not a string or a fact is not [string, integer].
PredictionSet read_predictions(const std::filesystem::path& path);
PredictionSet parse_predictions(const text::JsonField& file);

// The gold answer of a raw record. Throws Error naming the record's id and field.
GoldRecord parse_gold(const text::JsonField& record);

// All records of raw files, in order. Also throws Error on a repeated id, naming both positions.
std::vector<GoldRecord> read_gold(const std::vector<std::filesystem::path>& paths);

}  // namespace etc::hotpotqa

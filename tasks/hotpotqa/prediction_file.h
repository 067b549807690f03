// Prediction files and gold answers of HotpotQA in their official forms (task-hotpotqa 1.1, 5.4, 9).
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/hotpotqa/metrics.h"
#include "tasks/text/json_field.h"

namespace etc::hotpotqa {

// {"answer": {id: text}, "sp": {id: [[title, sentence number], …]}}. Throws Error naming file, id and element: not an
// object with both members, an id that occurs twice, an answer that is no string, a fact that is not [string, integer].
PredictionSet read_predictions(const std::filesystem::path& path);
PredictionSet parse_predictions(const text::JsonField& file);

// What a raw record says about its answer. Throws Error naming the record's id and field.
GoldRecord parse_gold(const text::JsonField& record);

// All records of raw files, in order. Throws Error also on an id that occurs twice, naming both places.
std::vector<GoldRecord> read_gold(const std::vector<std::filesystem::path>& paths);

}  // namespace etc::hotpotqa

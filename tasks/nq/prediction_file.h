// Prediction files and gold annotations of Natural Questions in their official forms (task-nq 1.2, 5.5, 6.2, 9).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "tasks/nq/metrics.h"
#include "tasks/text/json_field.h"

namespace etc::nq {

using PredictionMap = std::map<std::int64_t, Prediction>;

// {"predictions": [{"example_id": …, "long_answer": {…}, …}, …]}. Throws Error naming file, position, id and field for
// another structure, wrong types, a repeated id, a missing or non-finite score, a span with only one end or whose start is
// not before its end, and for yes or no together with a short span.
PredictionMap read_predictions(const std::filesystem::path& path);
PredictionMap parse_predictions(const text::JsonField& file);

// The annotations of a raw record, original or simplified. Throws Error naming the record's id and field.
GoldDocument parse_gold(const text::JsonField& record);

// The id of a raw record: a 64-bit integer, or a string that holds one (the published test files).
std::int64_t example_id(const text::JsonField& record);

struct Gold {
  std::vector<GoldDocument> documents;    // with annotations, in order
  std::vector<std::int64_t> unannotated;  // ids of the others, which cannot be scored
};

// All records of raw files, in order. Also throws Error on a repeated id, naming both positions.
Gold read_gold(const std::vector<std::filesystem::path>& paths);

// Removes the predictions for unannotated documents. Throws Error listing the first ids (up to ten) that only one of the
// two sides has.
void match_ids(PredictionMap& predictions, const Gold& gold, const std::string& where);

}  // namespace etc::nq

// One row's prediction as readable text.
#pragma once

#include <string>

#include "tasks/glue/data_sets.h"
#include "tasks/task.h"

namespace etc::glue {

// The row as in its file, the predicted label or score, and the row's own.
std::string shown_prediction(const data::RecordSlice& raw_record, const data::Example& example,
                             const HeadOutput& logits, const DataSetInfo& info);

}  // namespace etc::glue

// One row's prediction for people.
#pragma once

#include <string>

#include "tasks/glue/data_sets.h"
#include "tasks/task.h"

namespace etc::glue {

// The row as it stands in its file, the label or score predicted, and that of the row.
std::string shown_prediction(const data::RecordSlice& raw_record, const data::Example& example,
                             const HeadOutput& logits, const DataSetInfo& info);

}  // namespace etc::glue

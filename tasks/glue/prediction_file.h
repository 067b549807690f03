// Prediction files of GLUE in the benchmark's submission form, and their gold rows.
#pragma once

#include <filesystem>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "tasks/glue/data_sets.h"

namespace etc::glue {

// The data set of a prediction file, from its name: "CoLA.tsv", … "MNLI-m.tsv", "MNLI-mm.tsv". Throws Error listing the
// valid names for any other.
const DataSetInfo& data_set_of_file(const std::filesystem::path& path);

// Scores the predictions, lines "index<tab>prediction" after a header, against the rows of the gold files, which are
// numbered continuously over several files. Returns {"metrics": …, "rows": …}. Throws Error naming file and line for a row
// with no prediction or two, an index without a row, an answer that is not a label, or an unreadable gold row.
// predictions: a ".zip" is a submission: each gold file, in a folder named as in the benchmark ("MNLI/dev_matched.tsv"), is
// compared with the file of its data set. Metrics are then named "CoLA.matthews", and "overall" is nine_row_overall() if
// all nine are present.
Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);

}  // namespace etc::glue

// Prediction files of GLUE in the benchmark's submission form, and their gold rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "tasks/glue/data_sets.h"

namespace etc::glue {

// The data set of a prediction file, from its name: "CoLA.tsv", … "MNLI-m.tsv", "MNLI-mm.tsv". Throws Error listing the
// valid names for any other.
const DataSetInfo& data_set_of_file(const std::filesystem::path& path);

// Numbers the rows of several files as prediction files do: a row of the first file has its number in the file, with rows
// that are left out counted (QQP's short ones); the next file's row 0 follows the last row numbered before it.
class RowNumbers {
 public:
  // record: the row's number in its file. Rows come in order; one that does not exceed the row before begins another file.
  std::int64_t next(std::int64_t record);

 private:
  std::int64_t last_record_ = -1, rows_before_ = 0;  // in the current file, in the files before it
};

// Scores the predictions, lines "index<tab>prediction" after a header, against the rows of the gold files (RowNumbers).
// Returns {"metrics": …, "rows": …}. Throws Error naming file and line for a row
// with no prediction or two, an index without a row, an answer that is not a label, or an unreadable gold row.
// predictions: a ".zip" is a submission: each gold file, in a folder named as in the benchmark ("MNLI/dev_matched.tsv"), is
// compared with the file of its data set. Metrics are then named "CoLA.matthews", and "overall" is nine_row_overall() if
// all nine are present.
Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);

}  // namespace etc::glue

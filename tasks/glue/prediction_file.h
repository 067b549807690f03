// Prediction files of GLUE in the benchmark's submission form, and their gold rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "etc_core/base/json.h"
#include "tasks/glue/data_sets.h"

namespace etc::glue {

// The data set whose predictions a file of this name holds: "CoLA.tsv", … "MNLI-m.tsv", "MNLI-mm.tsv". Throws Error
// listing the names where it is none.
const DataSetInfo& data_set_of_file(const std::filesystem::path& path);

// Scores the predictions, "index<tab>prediction" a line behind a header, by the rows of gold files, which are counted on
// over several. {"metrics": …, "rows": …}. Throws Error naming file and line: a row without or with two predictions, an
// index that no row has, an answer that is no label, a gold row that cannot be read.
// predictions: ".zip", a submission: each gold file, in a folder named as the benchmark's ("MNLI/dev_matched.tsv"), is
// compared with the file of its data set. Metrics are then named "CoLA.matthews", and "overall" is nine_row_overall()
// where all nine are there.
Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);

}  // namespace etc::glue

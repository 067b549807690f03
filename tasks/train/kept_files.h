// What a model folder keeps beside the weights, so that raw records can be read with it alone: vocabulary, Punkt tables.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc {

// The files of every checkpoint of a run. The vocabulary, if there is one, is given to the task, and its name in the
// folder noted in `identity`, the data's. Throws UsageError where the task needs a vocabulary and there is none, and on
// tables for data that were not cut by Punkt; Error where vocabulary or tables are not those of the data. What the
// model's folder will lack for raw records, the log says.
MoreFiles files_to_keep(const RunConfig& config, Task& task, DataIdentity& identity);

// "punkt:FOLDER" where the model folder keeps tables; else empty.
std::string splitter_in(const std::filesystem::path& folder);

}  // namespace etc

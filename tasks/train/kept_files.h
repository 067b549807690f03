// Files that a model folder keeps beside the weights, so that the folder alone suffices to read raw records:
// vocabulary, Punkt tables.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc {

// The additional files of every checkpoint of a run. The vocabulary, if any, is given to the task, and its name in the
// folder is set in `identity` (the data's). Throws UsageError if the task needs a vocabulary and none is given, and for
// tables with data that were not split by Punkt; Error if vocabulary or tables are not those of the data. Logs what the
// model's folder will lack for raw records.
MoreFiles files_to_keep(const RunConfig& config, Task& task, DataIdentity& identity);

// "punkt:FOLDER" if the model folder has Punkt tables; else empty.
std::string splitter_in(const std::filesystem::path& folder);

}  // namespace etc

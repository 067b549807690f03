// Punkt tables learned from the records that are to be prepared.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// Learns from the texts of all records of the raw files (data/text/punkt_trainer.h; the files are read three times) and
// writes the tables into the folder named by the setting `splitter`, "punkt:FOLDER". Throws UsageError when the task
// does not split sentences, an input is a stream, or the setting names no folder or one that exists; Error when a file
// cannot be read. task: its name, for messages.
void learn_splitter(const std::string& task, const PreparationKind& kind, const Json& settings,
                    const std::vector<std::filesystem::path>& inputs);

}  // namespace etc::prepare

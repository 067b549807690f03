// A WordPiece vocabulary learned from the raw texts of a task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// Learns at most `size` pieces from the texts of all raw files (data/text/wordpiece_trainer.h; the files are read once)
// and writes them to output, one per line. Uses the settings that determine how a file is read, and do_lower_case.
// Throws UsageError when the task has no texts to learn from or size is too small for the characters; Error when there
// is no word, or a file is missing or cannot be read to its end.
//   task  its name, for messages
void learn_vocabulary(const std::string& task, const PreparationKind& kind, const Json& settings, std::int64_t size,
                      const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& output);

// Writes what was learned, completely or not at all; a signal during writing throws Interrupted. (Earlier, when nothing
// is written yet, a signal ends the process.)
void write_learned(const std::filesystem::path& output, std::string_view bytes);

}  // namespace etc::prepare

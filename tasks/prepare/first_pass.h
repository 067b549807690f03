// The first pass of tasks that keep one record per id: which of the records of each id is the best.
//
// Only what can matter is read. Every record's id is taken from its text (unique_id); the records whose id comes only once, nearly
// all, are never parsed here, those of the others are parsed and ranked in a second walk over the files.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "tasks/prepare/choice.h"
#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// The choice among the records of repeated ids; a record of another id, or whose id is unknown here, is the only one
// that could be kept. What is wrong with a file or a record is for the conversion to report.
//   preparation    has a unique_field()
//   progress       walk 0 or 1, bytes of all files read so far; may throw to stop. Without repeated ids there is no
//                  walk 1
// Memory: 8 bytes for each record, and the repeated ids.
Choice choose_records(const Preparation& preparation, const std::vector<std::filesystem::path>& inputs,
                      const std::function<void(int walk, std::int64_t bytes)>& progress);

}  // namespace etc::prepare

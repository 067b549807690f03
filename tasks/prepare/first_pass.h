// The first pass of tasks that keep one record per id: determines the best record of each id.
//
// Only what is needed is read. Every record's id is extracted from its text (unique_id). Records whose id occurs only
// once, nearly all of them, are never parsed here; the others are parsed and ranked in a second walk over the files.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "tasks/prepare/choice.h"
#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// The choice among the records of repeated ids; a record whose id is not in it is the only one with that id. Faults of
// files and records are left for the conversion to report.
//   preparation    has a unique_field()
//   progress       walk 0 or 1, bytes of all files read so far; may throw to stop. Without repeated ids there is no
//                  walk 1
// Memory: 8 bytes for each record, and the repeated ids.
Choice choose_records(const Preparation& preparation, const std::vector<std::filesystem::path>& inputs,
                      const std::function<void(int walk, std::int64_t bytes)>& progress);

}  // namespace etc::prepare

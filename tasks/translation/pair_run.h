// The run of a translation's preparation: all pairs of files from front to back.
#pragma once

#include <cstdint>

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/run.h"

namespace etc::translation {

// options.inputs and options.targets line by line through preparation.convert_record() into the data set. Ids are
// numbered over all files; references stay out of split train. unknown_id: of <unk>, whose share is reported. Keeps the
// promises of prepare::run.
prepare::Counts run_pairs(const prepare::Preparation& preparation, const prepare::RunOptions& options,
                          std::int64_t unknown_id);

}  // namespace etc::translation

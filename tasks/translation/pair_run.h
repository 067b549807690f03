// The run of a translation preparation: all pairs of files in order.
#pragma once

#include <cstdint>

#include "tasks/prepare/preparation.h"
#include "tasks/prepare/run.h"

namespace etc::translation {

// Converts options.inputs and options.targets line by line by preparation.convert_record() into the data set. Ids are
// numbered over all files; split train gets no references. unknown_id: id of <unk>, whose share is reported. The contract of
// prepare::run applies.
prepare::Counts run_pairs(const prepare::Preparation& preparation, const prepare::RunOptions& options,
                          std::int64_t unknown_id);

}  // namespace etc::translation

// Processes that are to train one model must be equal in everything its bits depend on.
#pragma once

#include "etc_core/base/json.h"
#include "etc_core/comm/communicator.h"
#include "tasks/train/run_config.h"

namespace etc {

// The file that holds the code at this address: a shared library's, or /proc/self/exe for the program's own.
std::string file_of_code(const void* code);

// What computes as it lies on disk, the program or, in another's process (Python), the library that holds this code, for
// `require_agreement`: {"program": {"executable": "…"}}.
Json program_identity();

// Of a training: what makes a run the same one (run_state.h), the program, and what the run does when.
Json agreement_of(const RunConfig& config, const Json& identity);

// Throws Error in every process where one of them differs from the first, naming its rank, what differs and both
// values. own: {section: {key: value}}.
void require_agreement(Communicator& processes, const Json& own);

}  // namespace etc

// The processes of one training run must agree in everything that its bits depend on.
#pragma once

#include "etc_core/base/json_fwd.h"
#include "etc_core/comm/communicator.h"
#include "tasks/train/run_config.h"

namespace etc {

// The file that contains the code at this address: a shared library, or /proc/self/exe for the program itself.
std::string file_of_code(const void* code);

// Identifies the executable code on disk, for `require_agreement`: the program or, within another program's process
// (Python), the library that contains this code. {"program": {"executable": "…"}}.
Json program_identity();

// For a training run: what identifies the run (run_state.h), the program, and when the run logs, saves and evaluates.
Json agreement_of(const RunConfig& config, const Json& identity);

// Throws Error in every process if one of them differs from the first, naming its rank, what differs and both values.
// own: {section: {key: value}}.
void require_agreement(Communicator& processes, const Json& own);

}  // namespace etc

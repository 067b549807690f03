// The processes this program was started as: one, or several by mpirun.
#pragma once

#include <string>

#include "etc_core/comm/communicator.h"
#include "etc_core/nn/parameters.h"
#include "tasks/train/evaluate.h"

namespace etc::cli {

// The processes of this run of the program; a single process until join_others().
Communicator& processes();

// Joins the other processes if a launcher started any. All but the first become silent, and each uses as many threads
// as it has processors of its own. Errors as join_processes().
void join_others();

// Waits for the other processes at the end of the program.
void leave_others();

// For commands that gain nothing from several processes. Throws UsageError if there are several.
void require_one_process(const std::string& where, const std::string& what);

// Throws Error in every process unless all run the same program on equal processors with equal models, and with equal
// data if these are not null.
void require_equal_work(const Json& model, const Json& data);
// The same for a model with these weights and settings.
void require_equal_models(const ParameterSet& parameters, const Json& settings, const Json& data = nullptr);

// Throws Error in every process unless all predict with the same weights from the same data. Returns the first
// process's version of the pass.
DatasetPass agreed_pass(const DatasetPass& pass, const ParameterSet& parameters, const Json& settings);

}  // namespace etc::cli

// The processes this program was started as: one, or several by mpirun.
#pragma once

#include <functional>
#include <string>

#include "etc_core/comm/communicator.h"
#include "etc_core/nn/parameters.h"
#include "tasks/train/evaluate.h"

namespace etc::cli {

// Of this run of the program; one process until join_others().
Communicator& processes();

// Joins the other processes if a launcher started any: all but the first fall silent, and each takes as many threads as
// it has processors of its own. Errors as join_processes().
void join_others();

// Waits for the others at the end of the program.
void leave_others();

// For commands that nothing is gained for by sharing. Throws UsageError where there are several processes.
void require_one_process(const std::string& where, const std::string& what);

// Throws Error in every process unless all run the same program on processors alike with equal models, and equal data
// where they are not null.
void require_equal_work(const Json& model, const Json& data);
// The same of a model with these weights and settings.
void require_equal_models(const ParameterSet& parameters, const Json& settings, const Json& data = nullptr);

// Throws Error in every process unless all predict with the same weights from the same data. Returns the pass as the
// first process would make it.
DatasetPass agreed_pass(const DatasetPass& pass, const ParameterSet& parameters, const Json& settings);

}  // namespace etc::cli

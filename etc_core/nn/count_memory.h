// Peak memory of a computation, before it runs.
//
// There is no second description of the model that could differ from the first: the program's own forward and backward
// pass allocate and free as they always do, with kernels that compute nothing on memory that is only reserved. The
// ledger then knows the peak and its split by purpose.
#pragma once

#include <functional>

#include "etc_core/base/memory_ledger.h"

namespace etc {

// The ledger's peak of body(), what the process holds already included; memory_ledger::reset_peak() within body()
// leaves out what came before. The process's own ledger shows nothing of it, and other threads may compute or count
// meanwhile. The CPU backend must be registered (backends.h).
// body() may build models, allocate parameters (not initialize them) and run tapes; updates and sums of gradients,
// which are no kernels, it must leave out and hold their memory instead. Not counted: the worker threads' small working
// memory (below a megabyte each), what threads of body()'s own allocate, and what is no Buffer or Tensor. Cost: building
// labels and tiles of the input, plus microseconds per operator.
MemoryReport count_memory(const std::function<void()>& body);

}  // namespace etc

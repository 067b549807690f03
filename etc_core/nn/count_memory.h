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
// leaves out what came before. Afterwards the CPU backend is registered and the ledger's peak is what is held then.
// body() may build models, allocate parameters (not initialize them) and run tapes; updates and sums of gradients,
// which are no kernels, it must leave out and hold their memory instead. Not counted: the worker threads' small working
// memory (below a megabyte each), and what is no Buffer or Tensor. Not for use while other threads compute. Cost:
// building labels and tiles of the input, plus microseconds per operator.
MemoryReport count_memory(const std::function<void()>& body);

}  // namespace etc

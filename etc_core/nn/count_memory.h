// Forecast of the peak memory of a computation.
//
// No second description of the model is needed: the program's own forward and backward pass allocate and free as usual,
// but with kernels that compute nothing and memory that is only reserved. The ledger then holds the peak and its split
// by purpose.
#pragma once

#include <functional>

#include "etc_core/base/memory_ledger.h"

namespace etc {

// Returns the ledger's peak during body(), including what the process already holds; memory_ledger::reset_peak() within
// body() excludes what came before. The process's own ledger is not affected, and other threads may compute or count at
// the same time. The CPU backend must be registered (backends.h).
// body() may build models, allocate parameters (not initialize them) and run tapes. It must omit updates and sums of
// gradients, which are not kernels, and hold their memory instead. Not counted: the small working memory of worker
// threads (below a megabyte each), allocations by threads that body() starts, and memory that is not a Buffer or
// Tensor. Cost: building labels and tiles of the input, plus microseconds per operator.
MemoryReport count_memory(const std::function<void()>& body);

}  // namespace etc

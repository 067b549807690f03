// Counting mode: what a computation needs in memory is found out by running its own code without doing its work.
//
// While a thread counts, its kernels are those of Device::counting, which compute nothing (kernel_slot.h), its buffers
// are charged to a ledger of its own (memory_ledger.h), and large ones are only reserved: their pages cost nothing until
// somebody touches them, and no size is refused. Data keep real memory, since what is allocated later depends on them,
// and so do labels unless somebody knows that without them (reserve_labels). What is read from a reserved buffer means
// nothing. Other threads notice nothing of it. nn/count_memory.h is how to count.
#pragma once

#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/not_copied.h"

namespace etc {

// Whether the calling thread counts.
bool counting();

// Whether counting only reserves labels as well. Of the calling thread.
void reserve_labels(bool reserved);

// The thread that makes one counts while it lives; not nested.
class CountingMode : NotCopied {
 public:
  CountingMode();
  ~CountingMode();

 private:
  memory_ledger::ThreadLedger ledger_;
};

}  // namespace etc

// Counting mode: the memory forecast runs the computation's own code with kernels that do nothing, and counts buffers.
//
// While a thread counts, it uses the kernels of Device::counting, which compute nothing (kernel_slot.h). Its buffers
// are charged to a ledger of its own (memory_ledger.h), and large ones are only reserved: untouched pages take no
// memory, and no size is refused. Data keep real memory, because later allocations depend on their values. So do
// labels, unless the caller can count without them (reserve_labels). Values read from a reserved buffer are
// meaningless. Other threads are not affected. To count, use nn/count_memory.h.
#pragma once

#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/not_copied.h"

namespace etc {

// Whether the calling thread counts.
bool counting();

// Whether counting on the calling thread only reserves labels, too.
void reserve_labels(bool reserved);

// Puts the calling thread into counting mode while the object lives; not nested.
class CountingMode : NotCopied {
 public:
  CountingMode();
  ~CountingMode();

 private:
  memory_ledger::ThreadLedger ledger_;
};

}  // namespace etc

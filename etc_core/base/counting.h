// Counting mode: what a computation needs in memory is found out by running its own code without doing its work.
//
// While one CountingMode exists, large buffers are charged to the ledger but only reserved: their pages cost nothing
// until somebody touches them, and no size is refused. Data keep real memory, since what is allocated later depends on
// them, and so do labels unless somebody knows that without them (reserve_labels). Whoever counts also takes the
// kernels out of their slots (nn/count_memory.h does both), so that nobody does touch them; what is read from such a
// buffer means nothing.
#pragma once

namespace etc {

bool counting();

// Whether counting only reserves labels as well. Process-wide.
void reserve_labels(bool reserved);

// Process-wide; not for two threads at a time, and not nested.
class CountingMode {
 public:
  CountingMode();
  ~CountingMode();
  CountingMode(const CountingMode&) = delete;
  CountingMode& operator=(const CountingMode&) = delete;
};

}  // namespace etc

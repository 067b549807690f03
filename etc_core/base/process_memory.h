// What the process holds as the kernel counts it (resident), beside what the ledger counts.
//
// Resident memory is the ledger's buffers and what is no buffer: the program and its libraries as far as they were used
// (23 MB of them in a training), stacks, and small objects on malloc's heaps. The ledger's peak is counted before a
// run (nn/count_memory.h); the rest is measured, before, by bytes_beside_buffers(), and what is known to come is added.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/device.h"
#include "etc_core/base/memory_ledger.h"

namespace etc {

// A peak of the process: the ledger's, by purpose, and the rest.
struct ProcessMemory {
  MemoryReport buffers;
  std::int64_t beside = 0;

  std::int64_t peak() const { return buffers.peak + beside; }
};

// Gives back to the system what malloc's heaps and large_blocks keep for later.
void release_unused_memory();

// Resident bytes now that are no buffers; first gives back what malloc's heaps keep for later. Not while counting
// (counting.h). 0 where the kernel does not say.
std::int64_t bytes_beside_buffers();

// The peak so far of a process that computes on `device`. On the host as the kernel saw it: beside is its high-water
// mark less the ledger's peak. On another device of the buffers alone.
ProcessMemory measured_memory(Device device);

// The kernel's high-water mark starts again at what is resident now, as memory_ledger::reset_peak() for the ledger.
// False where the kernel does not do that.
bool reset_process_peak();

// "1.2 GB: weights 0.1, gradients 0.1, …, program 0.1": what is not zero, in the order of the purposes.
std::string memory_text(const ProcessMemory& memory);

}  // namespace etc

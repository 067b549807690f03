// Resident memory (RSS) of the process as the kernel counts it, split into the ledger's buffers and the rest.
//
// The rest consists of used pages of the program and its libraries (23 MB in a training), stacks, and small objects on
// malloc's heaps. The ledger's peak is counted before a run (nn/count_memory.h). The rest is measured before the run by
// bytes_beside_buffers(), and known later allocations are added.
#pragma once

#include <cstdint>
#include <string>

#include "etc_core/base/device.h"
#include "etc_core/base/memory_ledger.h"

namespace etc {

// Peak memory of the process: the ledger's peak, by purpose, and the rest.
struct ProcessMemory {
  MemoryReport buffers;
  std::int64_t beside = 0;

  std::int64_t peak() const { return buffers.peak + beside; }
};

// Returns free memory that malloc's heaps and large_blocks keep to the system.
void release_unused_memory();

// Resident bytes now outside buffers; first returns free memory of malloc's heaps to the system. Not while counting
// (counting.h). 0 where the kernel does not tell.
std::int64_t bytes_beside_buffers();

// The peak so far of a process that computes on `device`. For the host, `beside` is the kernel's peak RSS minus the
// ledger's peak. For another device, only buffers are counted.
ProcessMemory measured_memory(Device device);

// Resets the kernel's peak RSS to the current RSS, like memory_ledger::reset_peak() for the ledger. False where the
// kernel does not support that.
bool reset_process_peak();

// "1.2 GB: weights 0.1, gradients 0.1, …, program 0.1": the non-zero parts, in the order of the purposes.
std::string memory_text(const ProcessMemory& memory);

}  // namespace etc

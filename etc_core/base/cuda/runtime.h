// The functions of the CUDA runtime that the backend uses: memory on the device, copies, errors. Everything else in
// */cuda/ goes through this header, so the emulator can replace a device (tests/support/simt/runtime_simt.cpp).
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>
#include <string>

namespace etc::simt {

// Throws Error with the runtime's message unless `status` is success (runtime_errors.h). `where`: the kernel or action
// that failed.
void check_cuda(const char* where, int status);

// A description of the device. Its first use opens the device and throws Error when there is none, when the driver is
// older than the toolkit, or when the device does not support the kernels.
std::string device_description();

// The stream for all work, as the runtime's handle.
void* stream();

// Device memory, aligned to 256 bytes, uninitialised. Throws Error with the ledger's table when there is none left.
void* allocate(std::int64_t bytes);
void release(void* memory);

// Copies in stream order from any host memory, which may be reused when the call returns (staging.cpp).
void copy_to_device(void* to, const void* from, std::int64_t bytes);
// Waits for all earlier work on the stream, and runs the pending checks (late_checks.h).
void copy_to_host(void* to, const void* from, std::int64_t bytes);
void reserve_copies();  // allocates now what the first of these copies would: 16 MiB of pinned memory and 16 MiB on the
                        // device
void copy_within(void* to, const void* from, std::int64_t bytes);
void fill_zero(void* memory, std::int64_t bytes);
void wait();                     // until all work queued on the stream is done
std::int64_t memory_capacity();  // total bytes of the device's memory

// The parts of which the two copies above consist. The two queues run concurrently unless one waits for the other: the
// stream for all work, and one for copies.
enum class Queue : int { compute, copies };

// Pinned host memory, which the device can access directly; not charged to the ledger. Throws Error when there is none.
void* allocate_pinned(std::int64_t bytes);

// Queues a copy between pinned memory and the device, or on the device; it is done when a later event of the queue is.
void queue_copy(Queue queue, void* to, const void* from, std::int64_t bytes);

using Event = void*;
Event make_event();                            // counts as done until it is recorded
void record(Event event, Queue queue);         // done once all work queued so far is done
void wait_on_host(Event event);                // for its latest record()
void wait_on_queue(Queue queue, Event event);  // work queued from here on starts after the event

// Makes the functions above the memory and state of Device::cuda (base/backend.h).
void provide_memory();

}  // namespace etc::simt

// The few things the CUDA backend asks of the runtime: memory on the device, copies, errors. Everything else in */cuda/
// goes through this header, so the emulator can stand in for a device as a whole (tests/support/simt/runtime_simt.cpp).
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>
#include <string>

namespace etc::simt {

// Throws Error with the runtime's words unless `status` is success (runtime_errors.h): `where` is a kernel or what was
// being done.
void check_cuda(const char* where, int status);

// The device in words. Its first use: throws Error when there is none, when the driver is older than the toolkit, or
// when the device cannot do what the kernels need.
std::string device_description();

// The stream everything is put on, as the runtime's handle.
void* stream();

// Device memory, aligned to 256 bytes, uninitialised. Throws Error with the ledger's table when there is none left.
void* allocate(std::int64_t bytes);
void release(void* memory);

// In stream order; from any host memory, which may be reused when the call returns (staging.cpp).
void copy_to_device(void* to, const void* from, std::int64_t bytes);
// Waits for everything on the stream before it, and does the checks that are due (late_checks.h).
void copy_to_host(void* to, const void* from, std::int64_t bytes);
void reserve_copies();  // takes at once what the first of these copies would: 16 MiB of pinned memory, as many of the
                        // device's
void copy_within(void* to, const void* from, std::int64_t bytes);
void fill_zero(void* memory, std::int64_t bytes);
void wait();                     // until everything put on the stream is done
std::int64_t memory_capacity();  // bytes of the device's memory in all

// What the two copies are made of. Two queues, which run side by side unless one waits for the other: the stream of
// everything, and one for copies.
enum class Queue : int { compute, copies };

// Host memory the device copies from and to by itself; not charged to the ledger. Throws Error when there is none left.
void* allocate_pinned(std::int64_t bytes);

// A copy between pinned memory and the device, or on the device: under way until an event behind it is over.
void queue_copy(Queue queue, void* to, const void* from, std::int64_t bytes);

using Event = void*;
Event make_event();                            // over until it is recorded
void record(Event event, Queue queue);         // over once everything put on the queue so far is done
void wait_on_host(Event event);                // as it was recorded last
void wait_on_queue(Queue queue, Event event);  // what is put on the queue from here on begins after the event

// Makes the above the memory and state of Device::cuda (base/backend.h).
void provide_memory();

}  // namespace etc::simt

// An emulated device that fails like a real one: the failing operation has no effect and reports nothing; from then on
// every call of the runtime returns the error.
#pragma once

#include <cstdint>

namespace etc::simt {

// The number of kernels, copies, fills and library calls so far.
std::int64_t device_operations();

// After `operations` more of them, the next one fails with the runtime's `status`.
void lose_device_after(std::int64_t operations, int status);

// Restores the device, as for a new process, or cancels a failure that has not happened yet.
void restore_device();

// Called by the emulated runtime before an operation: false if it is the one that fails. Throws if the device is
// already lost; so does check_device, which is for calls that are not operations.
bool begin_operation(const char* what);
void check_device(const char* where);

}  // namespace etc::simt

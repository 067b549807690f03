// An emulated device that stops working, as a real one does: what fails leaves nothing behind and says nothing; from
// then on every call of the runtime returns the error.
#pragma once

#include <cstdint>

namespace etc::simt {

// Kernels, copies, fills and calls of the libraries so far.
std::int64_t device_operations();

// The one after `operations` more of them fails with the runtime's `status`.
void lose_device_after(std::int64_t operations, int status);

// A device as the next process finds it, or the failure that has not come yet called off.
void restore_device();

// What the emulated runtime asks. Before an operation: false if it is the one that fails. Throws when the device is
// lost already; so does check_device, for calls that are no operations.
bool begin_operation(const char* what);
void check_device(const char* where);

}  // namespace etc::simt

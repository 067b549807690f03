// Error messages for failed calls of the CUDA runtime. Needs no toolkit, so the emulator fails with the same messages.
//
// C++17: device code reads this header.
#pragma once

namespace etc::simt {

// Remembers the kernel launched last: kernels run asynchronously, so a later call reports their failure.
void note_launch(const char* kernel);

// where: the action or kernel that failed; status, name, text: the runtime's error number, name and description. Throws
// DeviceLost (base/device_lost.h) if, after this error, no later call can succeed, else Error.
[[noreturn]] void fail_in_runtime(const char* where, int status, const char* name, const char* text);

}  // namespace etc::simt

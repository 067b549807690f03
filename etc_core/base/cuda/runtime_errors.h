// What is said when a call of the CUDA runtime fails. Needs no toolkit: the emulator fails with the same words.
//
// C++17: device code reads this header.
#pragma once

namespace etc::simt {

// Remembers the kernel started last: a kernel that fails does so after its launch, and a later call finds out.
void note_launch(const char* kernel);

// where: what was being done, or a kernel; status, name, text: the runtime's number and words for it. Throws DeviceLost
// (base/device_lost.h) when no later call can succeed, which the number says, else Error.
[[noreturn]] void fail_in_runtime(const char* where, int status, const char* name, const char* text);

}  // namespace etc::simt

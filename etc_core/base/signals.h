// Where signal handlers may run while the program computes.
//
// oneDNN's generated code points the stack register into its buffers on the heap while it multiplies. A handler that
// runs on the thread's own stack then overwrites the memory below: "corrupted size vs. prev_size" at the next free, or
// wrong numbers. Therefore handlers run on a stack of their own (SA_ONSTACK), and threads that compute or read ahead
// block all signals.
#pragma once

#include <csignal>

#include "etc_core/base/not_copied.h"

namespace etc {

// Gives the calling thread an alternate signal stack, on which its handlers with SA_ONSTACK run until the thread ends.
// A thread that already has one keeps it. Throws Error when it cannot be allocated.
void use_signal_stack();

// While an object lives, the calling thread blocks all signals except those that its own faults cause; a thread started
// meanwhile blocks them for its whole life.
class SignalsBlocked : NotCopied {
 public:
  SignalsBlocked();
  ~SignalsBlocked();

 private:
  sigset_t before_;
};

}  // namespace etc

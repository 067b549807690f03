// Where signal handlers may run while the program computes.
//
// oneDNN's generated code points the stack register into its buffers on the heap while it multiplies. A handler that
// runs on the thread's own stack then writes over whatever lies below: "corrupted size vs. prev_size" at the next free,
// or wrong numbers. So handlers get a stack of their own (SA_ONSTACK), and threads that compute or read ahead take no
// signals at all.
#pragma once

#include <csignal>

#include "etc_core/base/not_copied.h"

namespace etc {

// The calling thread's handlers with SA_ONSTACK run on memory of their own from now on, until the thread ends. A thread
// that has such memory already keeps it. Throws Error when it cannot be had.
void use_signal_stack();

// While one lives, the calling thread takes no signal but those that its own faults cause; a thread that it starts
// takes none for its whole life.
class SignalsBlocked : NotCopied {
 public:
  SignalsBlocked();
  ~SignalsBlocked();

 private:
  sigset_t before_;
};

}  // namespace etc

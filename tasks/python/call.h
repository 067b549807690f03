// Code around every long call from Python: it releases the GIL, defers signals and restores the state of the caller's
// thread.
#pragma once

#include <nanobind/nanobind.h>

#include <csignal>
#include <exception>
#include <optional>
#include <shared_mutex>

#include "etc_core/base/interruption.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/signals.h"
#include "tasks/library/longetc.h"

namespace etc::python {

namespace nb = nanobind;

// Marks a call as in progress. Throws longetc::Error within another call of the same thread (from a progress function,
// a log or a signal handler), because it would deadlock on the outer call's locks; and in a process that was forked
// during a call, because the threads, and any locks they held, stayed behind in the parent.
class UnderWay : NotCopied {
 public:
  UnderWay();
  ~UnderWay();
};

// Calls hold it shared; changing the number of threads holds it exclusively, since scratch memory is allocated per
// thread.
std::shared_mutex& thread_count_in_use();

// The floating-point mode of the calling thread, which loops change (flush to zero): restored at the end.
class FloatingPointMode : NotCopied {
 public:
  FloatingPointMode();
  ~FloatingPointMode();

 private:
  unsigned mode_ = 0;
};

// Blocks signals of the calling thread while it computes (base/signals.h: a handler must not run on its stack then). On
// the interpreter's main thread, which runs Python's handlers, they are unblocked between layers; an exception from a
// handler ends the call.
class SignalsWait : NotCopied {
 public:
  SignalsWait();  // with the GIL
  // Rethrows the exception that a handler has raised, if any.
  void rethrow() const;

  // The part of the call without the GIL.
  class Section : NotCopied {
   public:
    explicit Section(SignalsWait& signals);

   private:
    std::optional<SignalsBlocked> blocked_;
    std::optional<InterruptionWatch> watch_;
  };

 private:
  void let_in();

  bool main_thread_;
  sigset_t before_;
  std::exception_ptr raised_;
};

// Runs work() without the GIL, for computations in this thread and the worker threads.
template <typename Work>
auto compute(Work&& work) {
  const UnderWay counted;
  SignalsWait signals;
  try {
    const nb::gil_scoped_release released;
    const std::shared_lock threads(thread_count_in_use());
    const FloatingPointMode as_before;
    const SignalsWait::Section section(signals);
    return work();
  } catch (...) {
    signals.rethrow();
    throw;
  }
}

// The same for runs that handle stop signals themselves (longetc::prepare, longetc::train).
template <typename Work>
auto run(Work&& work) {
  const UnderWay counted;
  const nb::gil_scoped_release released;
  const std::shared_lock threads(thread_count_in_use());
  const FloatingPointMode as_before;
  return work();
}

// Wraps a Python function (or None: no function) as the library's progress function. Also runs Python's signal
// handlers.
longetc::Progress progress_of(const nb::object& function);

}  // namespace etc::python

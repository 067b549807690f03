// What surrounds every long call from Python: the interpreter goes on, signals wait, and the caller's thread is left as
// it was found.
#pragma once

#include <nanobind/nanobind.h>

#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "etc_core/base/interruption.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/signals.h"
#include "tasks/library/longetc.h"

namespace etc::python {

namespace nb = nanobind;

// A call under way, from its first line to its last. Throws longetc::Error within another call of the same thread (from
// a progress function, a log or a signal handler), whose locks it would wait for; and in a process that was forked while
// there was one: threads, and whatever locks they held, stayed behind in the parent.
class UnderWay : NotCopied {
 public:
  UnderWay();
  ~UnderWay();
};

// Calls hold it shared; who changes the number of threads holds it alone, since scratch memory is counted by threads.
std::shared_mutex& thread_count_in_use();

// The mode of floating-point arithmetic of the calling thread, which loops change (flush to zero): as before at the end.
class FloatingPointMode : NotCopied {
 public:
  FloatingPointMode();
  ~FloatingPointMode();

 private:
  unsigned mode_ = 0;
};

// Signals of the calling thread wait while it computes (base/signals.h: a handler must not run on its stack then). On the
// interpreter's main thread, whose handlers are Python's, they are let in between layers; what a handler raises ends
// the call.
class SignalsWait : NotCopied {
 public:
  SignalsWait();  // with the GIL
  // Throws what a handler has raised, if one has.
  void rethrow() const;

  // From here on, without the GIL.
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

// work() without the GIL: for what computes, in this thread and the team's.
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

// The same for runs that stop by signals of their own accord (longetc::prepare, longetc::train).
template <typename Work>
auto run(Work&& work) {
  const UnderWay counted;
  const nb::gil_scoped_release released;
  const std::shared_lock threads(thread_count_in_use());
  const FloatingPointMode as_before;
  return work();
}

// A Python function (or None: no function) as what the library tells of progress. Runs Python's signal handlers, too.
longetc::Progress progress_of(const nb::object& function);

}  // namespace etc::python

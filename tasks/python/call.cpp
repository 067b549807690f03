#include "tasks/python/call.h"

#include <pthread.h>

#include <atomic>

#include "etc_core/base/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace etc::python {

namespace {

std::atomic<int> g_under_way{0};
thread_local bool t_under_way = false;
std::atomic<bool> g_torn{false};  // this process was forked during a call

bool watch_forks() {
  ::pthread_atfork(nullptr, nullptr, [] {
    if (g_under_way.load() > 0) g_torn = true;
  });
  return true;
}

}  // namespace

UnderWay::UnderWay() {
  static const bool watched = watch_forks();
  static_cast<void>(watched);
  if (g_torn) {
    throw longetc::Error(longetc::Error::Kind::failure,
                         "longetc: this process was forked while a call was under way, whose threads are not here: "
                         "expected a fork when nothing computes, or another start method "
                         "(multiprocessing.set_start_method(\"spawn\"))");
  }
  if (t_under_way) {
    throw longetc::Error(longetc::Error::Kind::usage,
                         "longetc: expected no call from a progress function, a log or a signal handler while another "
                         "call of the thread is under way");
  }
  ++g_under_way;
  t_under_way = true;
}

UnderWay::~UnderWay() {
  t_under_way = false;
  --g_under_way;
}

std::shared_mutex& thread_count_in_use() {
  static auto* const mutex = new std::shared_mutex;  // never destroyed: daemon threads may hold it at exit
  return *mutex;
}

FloatingPointMode::FloatingPointMode() {
#if defined(__x86_64__)
  mode_ = _mm_getcsr();
#endif
}

FloatingPointMode::~FloatingPointMode() {
#if defined(__x86_64__)
  _mm_setcsr(mode_);
#endif
}

SignalsWait::SignalsWait() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread_ = nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before_);
}

void SignalsWait::rethrow() const {
  if (raised_) std::rethrow_exception(raised_);
}

void SignalsWait::let_in() {
  // Unblocking delivers pending signals at once; Python's C handler only records which ones arrived.
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, &before_, &blocked);
  {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nb::python_error());
  }
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  // Do not throw Python's exception itself: while it propagates, the GIL that copying it requires is not held.
  if (raised_) throw Interrupted("longetc: a signal handler of the program ended the call");
}

SignalsWait::Section::Section(SignalsWait& signals) {
  blocked_.emplace();
  if (signals.main_thread_) watch_.emplace([&signals] { signals.let_in(); });
}

longetc::Progress progress_of(const nb::object& function) {
  // Needed even without a function, so that Python's handlers run for signals other than those that stop the run.
  return [&function](const longetc::ProgressReport& report) {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (function.is_none()) return true;
    return !function(nb::cast(report)).is(nb::bool_(false));
  };
}

}  // namespace etc::python

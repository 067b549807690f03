#include "etc_core/base/signals.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <unistd.h>

#include "etc_core/base/error.h"
#include "etc_core/base/not_copied.h"

namespace etc {

namespace {

// The registers of AVX-512 and AMX alone take 11 KB of it.
constexpr long kLeastStackBytes = 65536;

// A thread's stack for signal handlers; deregistered before its memory is freed.
class SignalStack : NotCopied {
 public:
  SignalStack() {
    stack_t own{};
    if (::sigaltstack(nullptr, &own) == 0 && (own.ss_flags & SS_DISABLE) == 0) return;  // one is already set
    const auto bytes = static_cast<std::size_t>(std::max(kLeastStackBytes, 4 * ::sysconf(_SC_MINSIGSTKSZ)));
    memory_ = std::make_unique<char[]>(bytes);
    own = {};
    own.ss_sp = memory_.get();
    own.ss_size = bytes;
    if (::sigaltstack(&own, nullptr) != 0) fail("signals", "no stack for handlers: {}", std::strerror(errno));
  }
  ~SignalStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }

 private:
  std::unique_ptr<char[]> memory_;
};

}  // namespace

void use_signal_stack() {
  thread_local const SignalStack own;
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace etc

#include "tasks/train/stop_signal.h"

#include "etc_core/base/error.h"
#include "etc_core/base/signals.h"
#include "etc_core/comm/communicator.h"

namespace etc {

namespace {

constexpr int kRequest = -1;  // not a signal number
volatile std::sig_atomic_t received = 0;
struct sigaction before_int, before_term, before_hangup;

struct sigaction ignoring() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigemptyset(&action.sa_mask);
  return action;
}

extern "C" void on_signal(int signal) {
  received = signal;
  const struct sigaction ignore = ignoring();
  sigaction(SIGPIPE, &ignore, nullptr);
}

}  // namespace

StopSignal::StopSignal() : query_(&StopSignal::requested) {
  received = 0;
  use_signal_stack();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags =
      static_cast<int>(SA_RESETHAND) | SA_RESTART | SA_ONSTACK;  // the second signal has the default action
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(SIGHUP, nullptr, &before_hangup);
  if (before_hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
  if (received > 0) return;
  sigaction(SIGHUP, &before_hangup, nullptr);
}

void StopSignal::request() {
  if (received == 0) received = kRequest;
}

bool StopSignal::requested() {
  return received != 0;
}

const char* StopSignal::name() {
  if (received == kRequest) return "the caller";
  return received == SIGTERM ? "SIGTERM" : received == SIGHUP ? "SIGHUP" : "SIGINT";
}

BrokenPipeIgnored::BrokenPipeIgnored() {
  const struct sigaction ignore = ignoring();
  sigaction(SIGPIPE, &ignore, &before_);
}

BrokenPipeIgnored::~BrokenPipeIgnored() {
  if (received <= 0) sigaction(SIGPIPE, &before_, nullptr);
}

void stop_if_told(const Communicator& processes, const std::string& message) {
  if (!StopSignal::requested()) return;
  if (processes.size() > 1) throw Error(message);
  throw Interrupted(message);
}

}  // namespace etc

#include "tasks/train/stop_signal.h"

#include <csignal>

namespace etc {

namespace {

volatile std::sig_atomic_t received = 0;
struct sigaction before_int, before_term;

extern "C" void on_signal(int signal) {
  received = signal;
}

}  // namespace

StopSignal::StopSignal() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second signal finds the default action
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
}

bool StopSignal::requested() {
  return received != 0;
}

const char* StopSignal::name() {
  return received == SIGTERM ? "SIGTERM" : "SIGINT";
}

}  // namespace etc

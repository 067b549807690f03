// SIGINT, SIGTERM and SIGHUP as a request that the loop asks about, so that a run ends between two steps with
// everything saved.
#pragma once

#include <csignal>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc {

class Communicator;

// While one exists, the first SIGINT, SIGTERM or SIGHUP only sets a flag. A second SIGINT or SIGTERM ends the process
// at once, as usual; a second SIGHUP does not, since a terminal that closes may send two. Where SIGHUP is ignored
// (nohup) it stays ignored. Once one was received, so is SIGPIPE: whoever read the messages may have got the signal as
// well.
class StopSignal : NotCopied {
 public:
  StopSignal();
  // The handlers of before; after a signal, not a request, SIGHUP and SIGPIPE stay harmless, for the process is clearing up to end.
  ~StopSignal();

  static void request();  // as a signal would, from any thread; only while one exists
  static bool requested();
  static const char* name();  // "SIGINT", "SIGTERM", "SIGHUP", "the caller"
};

// Throws Interrupted(message) after a stop signal; where there are several processes an Error, for the others must hear of
// it, and who is not stopped waits for this one.
void stop_if_told(const Communicator& processes, const std::string& message);

// While one exists, writing to a pipe that nobody reads any more is an error of that writing, not the end of the
// process: for work that goes on, or is saved first, when whoever read its messages is gone.
class BrokenPipeIgnored : NotCopied {
 public:
  BrokenPipeIgnored();
  ~BrokenPipeIgnored();  // as before, but after a stop signal

 private:
  struct sigaction before_ {};
};

}  // namespace etc

// Turns SIGINT, SIGTERM and SIGHUP into a flag that the loop checks, so that a run ends between two steps with
// everything saved.
#pragma once

#include <csignal>
#include <string>

#include "etc_core/base/interruption.h"
#include "etc_core/base/not_copied.h"

namespace etc {

class Communicator;

// While one exists, the first SIGINT, SIGTERM or SIGHUP only sets a flag. A second SIGINT or SIGTERM ends the process
// at once, as usual; a second SIGHUP does not, since a closing terminal may send two. If SIGHUP is ignored (nohup), it
// stays ignored. Once a signal was received, SIGPIPE is ignored as well: the reader of the messages may have received
// the same signal and ended.
class StopSignal : NotCopied {
 public:
  StopSignal();
  // Restores the previous handlers. After a signal (but not a request) SIGHUP and SIGPIPE stay ignored, because the
  // process is shutting down.
  ~StopSignal();

  static void request();  // as a signal would, from any thread; only while one exists
  static bool requested();
  static const char* name();  // "SIGINT", "SIGTERM", "SIGHUP", "the caller"

 private:
  StopQuery query_;  // waits of the library end as well
};

// Throws Interrupted(message) after a stop signal. With several processes throws an Error instead, because the others
// must be told, and those that got no signal wait for this one.
void stop_if_told(const Communicator& processes, const std::string& message);

// While one exists, writing to a pipe without a reader is a write error instead of the end of the process: for work
// that continues, or is saved first, after the reader of its messages has ended.
class BrokenPipeIgnored : NotCopied {
 public:
  BrokenPipeIgnored();
  ~BrokenPipeIgnored();  // restores the previous handler, except after a stop signal

 private:
  struct sigaction before_ {};
};

}  // namespace etc

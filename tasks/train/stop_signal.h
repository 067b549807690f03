// SIGINT and SIGTERM as a request that the loop asks about, so that a run ends between two steps with everything saved.
#pragma once

namespace etc {

// While one exists, the first SIGINT or SIGTERM only sets a flag; a second one ends the process at once, as usual.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();  // the handlers of before
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static bool requested();
  static const char* name();  // "SIGINT", "SIGTERM"
};

}  // namespace etc

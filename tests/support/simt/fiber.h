// Threads of a block as fibers: each has its own stack, and all run on one OS thread by switching stacks.
#pragma once

#include <functional>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::simt {

// Runs a body on its own stack until the body calls pause(). After the body has ended, start() is needed again.
class Fiber : NotCopied {
 public:
  Fiber();
  ~Fiber();

  // The next resume() starts `body` from its beginning. An earlier body's stack frames are discarded.
  void start(std::function<void()> body);
  // Runs until the body pauses or ends; true while it has not ended.
  bool resume();
  // Called inside the body: returns to the caller of resume().
  void pause();

 private:
  struct Machine;
  static void enter(Fiber* fiber);
  std::unique_ptr<Machine> machine_;
  std::function<void()> body_;
  bool ended_ = true;
};

}  // namespace etc::simt

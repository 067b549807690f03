// Threads of a block as fibers: stacks of their own, switched by hand, all on one thread of the machine.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::simt {

// Runs a body on its own stack until the body calls pause(). Not started again after the body has ended.
class Fiber : NotCopied {
 public:
  Fiber();
  ~Fiber();

  // Next resume() starts `body` from its beginning, whatever ran before: what it left on the stack is forgotten.
  void start(std::function<void()> body);
  // Runs until the body pauses or ends; true while it has not ended.
  bool resume();
  // Called inside the body: back to who called resume().
  void pause();

 private:
  struct Machine;
  static void enter(Fiber* fiber);
  std::unique_ptr<Machine> machine_;
  std::function<void()> body_;
  bool ended_ = true;
};

}  // namespace etc::simt

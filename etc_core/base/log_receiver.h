// Messages and progress for programs that use the project as a library, instead of standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc::log {

// From now on messages go to `receiver`, from any thread, one at a time; null: nowhere. A run's log file gets them,
// too.
void to_receiver(std::function<void(bool warning, const std::string& message)> receiver);

}  // namespace etc::log

namespace etc {

struct ProgressReport {
  std::string what, unit, note;
  std::int64_t done = 0, total = 0;  // total 0: unknown
};

// While an object exists, every Progress made by this thread sends each update to it, from any thread, without drawing.
class ProgressReceiver : NotCopied {
 public:
  using Receive = std::function<void(const ProgressReport&)>;
  explicit ProgressReceiver(Receive receive);
  ~ProgressReceiver();

  static std::shared_ptr<const Receive> current();  // of the calling thread; null: none

 private:
  std::shared_ptr<const Receive> before_;
};

}  // namespace etc

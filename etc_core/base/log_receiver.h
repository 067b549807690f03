// Messages and progress for whoever uses the project as a library, in the place of standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "etc_core/base/not_copied.h"

namespace etc::log {

// From now on messages go to `receiver`, from any thread, one at a time; null: nowhere. A run's file still gets its own.
void to_receiver(std::function<void(bool warning, const std::string& message)> receiver);

}  // namespace etc::log

namespace etc {

struct ProgressReport {
  std::string what, unit, note;
  std::int64_t done = 0, total = 0;  // total 0: unknown
};

// While one exists, every Progress made by this thread tells it of each update, from any thread, and draws nothing.
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

#include "etc_core/base/cuda/late_checks.h"

#include <utility>
#include <vector>

#include "etc_core/base/cuda/runtime.h"

namespace etc::simt {

namespace {

constexpr std::size_t kMost = 1000;
using Values = std::array<std::int32_t, 2>;

std::vector<LateCheck>& due() {
  static auto* const checks = new std::vector<LateCheck>;
  return *checks;
}

// Pinned memory that receives the values of each check.
Values* arrivals() {
  static auto* const pinned = static_cast<Values*>(allocate_pinned(kMost * sizeof(Values)));
  return pinned;
}

}  // namespace

void check_later(const std::int32_t* values, LateCheck check) {
  if (due().size() == kMost) {
    wait();
    run_late_checks();
  }
  queue_copy(Queue::compute, arrivals() + due().size(), values, sizeof(Values));
  due().push_back(std::move(check));
}

void run_late_checks() {
  const std::vector<LateCheck> checks = std::exchange(due(), {});
  for (std::size_t i = 0; i < checks.size(); ++i) checks[i](arrivals()[i]);
}

void forget_late_checks() {
  due().clear();
}

}  // namespace etc::simt

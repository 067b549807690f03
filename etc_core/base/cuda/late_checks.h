// What the host wants to know of the device, but not enough to wait for it: numbers that it looks at when it has waited
// for something behind them anyway.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace etc::simt {

using LateCheck = std::function<void(const std::array<std::int32_t, 2>& values)>;

// values [2] on the device, as the work put on the stream so far leaves them: `check` gets them at the end of the next
// copy_to_host(), which throws what it throws. So nothing that the host can read came before its checks. Waits only
// when a thousand are due.
void check_later(const std::int32_t* values, LateCheck check);

// Those that are due, in order; the first that throws calls off the others. The stream must be done.
void run_late_checks();

// After a failure of the device, whose numbers mean nothing.
void forget_late_checks();

}  // namespace etc::simt

// Deferred checks: values on the device that the host checks without an extra synchronisation, the next time it waits
// for later work anyway.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace etc::simt {

using LateCheck = std::function<void(const std::array<std::int32_t, 2>& values)>;

// values [2] on the device, as the work queued on the stream so far leaves them. `check` receives them at the end of
// the next copy_to_host(), which throws what `check` throws. So the checks run before the host reads any result. Waits
// only when a thousand checks are pending.
void check_later(const std::int32_t* values, LateCheck check);

// Runs the pending checks in order; the first that throws cancels the others. The stream must be idle.
void run_late_checks();

// Drops the pending checks after a failure of the device, whose values are then meaningless.
void forget_late_checks();

}  // namespace etc::simt

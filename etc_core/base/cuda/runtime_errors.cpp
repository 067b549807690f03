#include "etc_core/base/cuda/runtime_errors.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "etc_core/base/device_lost.h"
#include "etc_core/base/error.h"

namespace etc::simt {

namespace {

constexpr const char* kKernel =
    "once: start again; each time: CUDA_LAUNCH_BLOCKING=1 makes the message name the kernel, please report it";
constexpr const char* kHardware = "nvidia-smi -q and the system's log say what the device reports; use another one";
constexpr const char* kDisplay = "the system stops long kernels on a device with a display: use another one";

// Errors after which every further runtime call returns the same error (values of cudaError_t, which are stable).
struct Loss {
  int status;
  const char* advice;
};
constexpr std::array kLosses = {
    Loss{214, kHardware},  // ECCUncorrectable
    Loss{220, kHardware},  // NvlinkUncorrectable
    Loss{226, kHardware},  // Contained
    Loss{700, kKernel},    // IllegalAddress
    Loss{702, kDisplay},   // LaunchTimeout
    Loss{709, kKernel},    // ContextIsDestroyed
    Loss{710, kKernel},    // Assert
    Loss{714, kHardware},  // HardwareStackError
    Loss{715, kKernel},    // IllegalInstruction
    Loss{716, kKernel},    // MisalignedAddress
    Loss{717, kKernel},    // InvalidAddressSpace
    Loss{718, kKernel},    // InvalidPc
    Loss{719, kKernel},    // LaunchFailure
    Loss{721, kKernel},    // TensorMemoryLeak
    Loss{999, kHardware},  // Unknown
};

std::atomic<const char*> g_last_launch{"none"};

}  // namespace

void note_launch(const char* kernel) {
  g_last_launch = kernel;
}

void fail_in_runtime(const char* where, int status, const char* name, const char* text) {
  const auto* const loss =
      std::find_if(kLosses.begin(), kLosses.end(), [&](const Loss& known) { return known.status == status; });
  if (loss == kLosses.end()) fail(where, "{} ({})", text, name);
  throw DeviceLost(fmt::format(
      "cuda: the device was lost: {} ({}), found at: {}; the kernel started last is {}, and it or one before "
      "it failed ({})",
      text, name, where, g_last_launch.load(), loss->advice));
}

}  // namespace etc::simt

// A device that stops working: which call reports it, with which message, and what state remains.
#include "tests/support/simt/device_loss.h"

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/cuda/runtime_errors.h"
#include "etc_core/base/device_lost.h"
#include "etc_core/base/profiler.h"
#include "tests/support/catch.h"
#include "tests/support/simt/emulator.h"

using namespace etc;
using Catch::Matchers::Contains;

namespace {

constexpr int kEcc = 214, kLaunchFailure = 719, kInvalidValue = 1;

// Makes the device fail for one test; later tests find it restored.
struct Loss {
  Loss(std::int64_t operations, int status) { simt::lose_device_after(operations, status); }
  ~Loss() { simt::restore_device(); }
};

std::string message_of(int status) {
  try {
    simt::fail_in_runtime("a copy", status, "cudaErrorX", "some words");
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("a failed call says what it was, what failed and what to do", "[simt]") {
  simt::note_launch("forward_kernel");
  CHECK(message_of(kInvalidValue) == "a copy: some words (cudaErrorX)");
  CHECK_THAT(
      message_of(kLaunchFailure),
      Contains("cuda: the device was lost: some words (cudaErrorX), found at: a copy; the kernel started last is "
               "forward_kernel") &&
          Contains("CUDA_LAUNCH_BLOCKING=1"));
  CHECK_THAT(message_of(kEcc), Contains("the device was lost") && Contains("nvidia-smi"));
  CHECK_THROWS_AS(simt::fail_in_runtime("a copy", kInvalidValue, "", ""), Error);
  CHECK_THROWS_AS(simt::fail_in_runtime("a copy", kLaunchFailure, "", ""), DeviceLost);
}

TEST_CASE("every call to a lost device fails, nothing leaves a destructor, and its memory can be given back",
          "[simt]") {
  simt::provide_memory();
  std::vector<std::byte> host(3 << 20);
  const auto there_and_back = [&](std::vector<std::byte> sent) {
    Bytes device = simt::device_bytes(std::ssize(host), Purpose::scratch);
    simt::copy_to_device(device.data(), sent.data(), std::ssize(sent));
    simt::copy_to_host(host.data(), device.data(), std::ssize(host));
    return host == sent;
  };
  REQUIRE(there_and_back(std::vector<std::byte>(host.size(), std::byte{3})));  // the staging ring exists now
  const std::int64_t held = simt::memory_in_use();
  for (const std::int64_t operations : {0, 1, 2, 3}) {  // of the copy to the device, the fill, and the copy back
    CAPTURE(operations);
    const Loss loss(operations, kLaunchFailure);
    profiler::start();
    {
      Bytes device = simt::device_bytes(std::ssize(host), Purpose::scratch);
      const auto use = [&] {
        const profiler::Scope profiled("use", {});
        simt::copy_to_device(device.data(), host.data(), std::ssize(host));
        simt::fill_zero(device.data(), 256);
        simt::copy_to_host(host.data(), device.data(), std::ssize(host));
      };
      CHECK_THROWS_AS(use(), DeviceLost);
      CHECK_THROWS_AS(use(), DeviceLost);
      CHECK_THROWS_AS(simt::copy_to_host(host.data(), device.data(), 8), DeviceLost);
      CHECK_THROWS_AS(simt::wait(), DeviceLost);
      CHECK_THROWS_AS(simt::device_bytes(256, Purpose::scratch), DeviceLost);
    }
    profiler::stop();
  }
  CHECK(simt::memory_in_use() == held);
  CHECK(
      there_and_back(std::vector<std::byte>(host.size(), std::byte{7})));  // nothing of the failed copies is left over
}

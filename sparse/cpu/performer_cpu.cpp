// Linear attention on the CPU: compiled once per instruction set, selected at run time.
#include "sparse/performer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/cpu/performer_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "etc_core/base/vector_dispatch.h"
#include "sparse/cpu/performer_backward-inl.h"
#include "sparse/cpu/performer_forward-inl.h"
#include "sparse/register_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {

void performer_forward(const PerformerForward& args) {
  run_performer_forward(args);
}

void performer_backward(const PerformerBackward& args) {
  run_performer_backward(args);
}

std::int64_t performer_forward_scratch(const PerformerInputs& in) {
  Arena counter(nullptr);
  const PerformerForwardMemory memory(counter, in);
  return counter.used();
}

std::int64_t performer_backward_scratch(const PerformerInputs& in) {
  Arena counter(nullptr);
  const PerformerBackwardMemory memory(counter, in);
  return counter.used();
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::sparse {

void register_performer_kernels(Device device) {
  if (device == Device::counting) {
    performer_forward_slot.fill(device, [](const PerformerForward&) {});
    performer_backward_slot.fill(device, [](const PerformerBackward&) {});
  } else {
    performer_forward_slot.fill(device, [](const PerformerForward& a) { ETC_DISPATCH(performer_forward)(a); });
    performer_backward_slot.fill(device, [](const PerformerBackward& a) { ETC_DISPATCH(performer_backward)(a); });
  }
  performer_forward_scratch_slot.fill(
      device, [](const PerformerInputs& in) { return ETC_DISPATCH(performer_forward_scratch)(in); });
  performer_backward_scratch_slot.fill(
      device, [](const PerformerInputs& in) { return ETC_DISPATCH(performer_backward_scratch)(in); });
}

}  // namespace etc::sparse
#endif  // HWY_ONCE

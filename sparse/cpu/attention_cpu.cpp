// The attention operator on the CPU: compiled once per instruction set, selected at run time. The operator's Partition
// selects the division of work; loops, arithmetic and terms are the same for both divisions.
#include "sparse/attention.h"

#include "etc_core/base/cpu_limit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/cpu/attention_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// foreach_target includes this file once per instruction set; the -inl headers below are compiled each time, into a
// separate namespace.
#include "etc_core/base/vector_dispatch.h"
#include "sparse/cpu/by_keys-inl.h"
#include "sparse/cpu/by_queries-inl.h"
#include "sparse/register_cpu.h"
#include "sparse/visible_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace etc::sparse::HWY_NAMESPACE {

// Two kernels behind one slot. With many queries that see few keys, dividing by queries writes output rows once and
// never combines them. With few queries that see many keys, only splitting the keys gives every thread work. A single
// kernel would have to combine partial outputs of every long query, an extra pass over memory.
bool by_queries(const AttentionInputs& in) {
  return in.tiles->op->partition == Partition::queries;
}

void forward(const AttentionForward& args) {
  by_queries(args.inputs) ? run_forward<ByQueries>(args) : run_forward<ByKeys>(args);
}

void backward(const AttentionBackward& args) {
  by_queries(args.inputs) ? run_backward<ByQueries>(args) : run_backward<ByKeys>(args);
}

std::int64_t forward_scratch(const AttentionInputs& in) {
  return by_queries(in) ? scratch_bytes<ByQueries>(in, Pass::forward) : scratch_bytes<ByKeys>(in, Pass::forward);
}

std::int64_t backward_scratch(const AttentionInputs& in) {
  return by_queries(in) ? scratch_bytes<ByQueries>(in, Pass::backward) : scratch_bytes<ByKeys>(in, Pass::backward);
}

}  // namespace etc::sparse::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::sparse {

namespace {

// Slots take plain functions: a lambda that captures nothing is one.
void fill_scratch_sizes(Device device) {
  attention_forward_scratch_slot.fill(device,
                                      [](const AttentionInputs& in) { return ETC_DISPATCH(forward_scratch)(in); });
  attention_backward_scratch_slot.fill(device,
                                       [](const AttentionInputs& in) { return ETC_DISPATCH(backward_scratch)(in); });
}
}  // namespace

void register_cpu_kernels() {
  apply_cpu_limit();
  attention_forward_slot.fill(Device::cpu, [](const AttentionForward& a) { ETC_DISPATCH(forward)(a); });
  attention_backward_slot.fill(Device::cpu, [](const AttentionBackward& a) { ETC_DISPATCH(backward)(a); });
  fill_scratch_sizes(Device::cpu);
  register_statistics_kernels(Device::cpu);
  register_performer_kernels(Device::cpu);
}

void register_counting_kernels() {
  attention_forward_slot.fill(Device::counting, [](const AttentionForward&) {});
  attention_backward_slot.fill(Device::counting, [](const AttentionBackward&) {});
  fill_scratch_sizes(Device::counting);
  register_statistics_kernels(Device::counting);
  register_performer_kernels(Device::counting);
}

}  // namespace etc::sparse
#endif  // HWY_ONCE

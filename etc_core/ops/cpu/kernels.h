// The functions that register_cpu.cpp calls. Each operator's file fills its own slots for the CPU and for
// Device::counting, whose kernels compute nothing but take the same working memory as the CPU's kernels take on the
// calling thread (base/counting.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "etc_core/base/kernel_slot.h"
#include "etc_core/ops/cpu/scratch.h"

namespace etc::ops::cpu {

void register_activation();
void register_cross_entropy();
void register_dropout();
void register_elementwise();
void register_embedding();
void register_layer_norm();
void register_linear();
void register_position_bias();
void register_scaled_sum();
void register_segments();
void register_top_k();
void register_update();
void register_vocabulary_softmax();

// Fills the slot of an operator whose working memory is negligible.
template <typename Result, typename... Args>
void fill_slot(KernelSlot<Result(Args...)>& slot, Result (*kernel)(Args...)) {
  slot.fill(Device::cpu, kernel);
  slot.fill(Device::counting, [](Args...) { return Result(); });
}

// Fills the slot of an operator that must also compute in counting mode.
template <typename Result, typename... Args>
void fill_slot_computing(KernelSlot<Result(Args...)>& slot, Result (*kernel)(Args...)) {
  slot.fill(Device::cpu, kernel);
  slot.fill(Device::counting, kernel);
}

// For a counting kernel: takes working memory and releases it at once. This suffices because the ledger records the
// peak.
inline void count_scratch(std::int64_t bytes) {
  Scratch scratch;
  scratch.take<std::byte>(bytes);
}

}  // namespace etc::ops::cpu

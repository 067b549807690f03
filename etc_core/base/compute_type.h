// In what numbers the large products are multiplied: those of dense layers and of attention.
//
// Sums are kept in fp32 (int8: int32 and then fp32), and everything that is not a large product (normalisation,
// softmax, running scores, residual sums) stays fp32. Everything that is compared with the reference uses fp32.
// Training in bf16 rounds the operands of the encoder's dense layers, and on a GPU those of attention, to nearest even:
// z = x·W, dx = dz·Wᵀ and dW += xᵀ·dz, each of them on its own. Parameters, activations, gradients and the optimiser's
// state are fp32, and so are the heads. There is no training in int8.
#pragma once

#include <optional>
#include <string_view>

namespace etc {

enum class ComputeType : int { fp32, bf16, int8 };
inline constexpr int kComputeTypes = 3;

inline const char* compute_type_name(ComputeType type) {
  constexpr const char* kNames[kComputeTypes] = {"fp32", "bf16", "int8"};
  return kNames[static_cast<int>(type)];
}

inline std::optional<ComputeType> compute_type_from_name(std::string_view name) {
  for (int i = 0; i < kComputeTypes; ++i) {
    const auto type = static_cast<ComputeType>(i);
    if (name == compute_type_name(type)) return type;
  }
  return std::nullopt;
}

}  // namespace etc

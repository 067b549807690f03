// In what numbers the large products of an inference are multiplied.
//
// Sums are kept in fp32 (int8: int32 and then fp32), and everything that is not a large product (normalisation,
// softmax, running scores, residual sums) stays fp32. Training and everything that is compared with the reference use
// fp32.
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

// The number type in which large matrix products (dense layers and attention) are computed, and the number type in
// which running scores are carried from layer to layer.
//
// Sums are kept in fp32 (int8: int32 and then fp32), and everything that is not a large product (normalisation,
// softmax, running scores, residual sums) stays fp32. Everything that is compared with the reference uses fp32.
// Training in bf16 rounds the operands of the encoder's dense layers and of attention to nearest even: z = x·W,
// dx = dz·Wᵀ and dW += xᵀ·dz, each of them on its own. Parameters, their gradients and the optimiser's state are fp32,
// and so are the heads. There is no training in int8. Activations and their gradients that only products and attention
// read are bf16 in memory, too (keeps_bf16() in base/backend.h), all others fp32.
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

// The number type of the running scores of residual attention. int32: fixed point, sums are exact
// (sparse/score_element.h). fp16: half the memory, for inference on the CPU; the error of a sum of l scores is at most
// 2^-11 times the total of the partial sums before it.
enum class ScoreType : int { int32, fp16 };

inline std::optional<ScoreType> score_type_from_name(std::string_view name) {
  if (name == "int32") return ScoreType::int32;
  if (name == "fp16") return ScoreType::fp16;
  return std::nullopt;
}

// The number types of a model that is used for inference only.
struct InferenceTypes {
  constexpr InferenceTypes(ComputeType products = ComputeType::fp32, ScoreType carried = ScoreType::int32)
      : compute(products), scores(carried) {}

  ComputeType compute;
  ScoreType scores;
};

}  // namespace etc

// The number type of an array in memory. The type in which products are computed is ComputeType (compute_type.h).
#pragma once

#include <cstdint>

namespace etc {

enum class ElementType : int { fp32, bf16 };

constexpr std::int64_t element_bytes(ElementType type) {
  return type == ElementType::bf16 ? 2 : 4;
}

constexpr const char* element_type_name(ElementType type) {
  return type == ElementType::bf16 ? "bf16" : "fp32";
}

}  // namespace etc

// Arrays in either fp32 or bf16.
#pragma once

#include <cstdint>

#include "etc_core/base/bf16.h"

namespace etc::ops::cpu {

// A pointer to numbers in one of two types; if both are null, the array is absent.
template <typename Fp32, typename Half>
struct EitherType {
  Fp32* fp32 = nullptr;
  Half* bf16 = nullptr;

  EitherType() = default;
  EitherType(Fp32* numbers) : fp32(numbers) {}
  EitherType(Half* numbers) : bf16(numbers) {}
  EitherType(Fp32* in_fp32, Half* in_bf16) : fp32(in_fp32), bf16(in_bf16) {}

  bool given() const { return fp32 != nullptr || bf16 != nullptr; }
  // The array from number `at` on; an absent array stays absent.
  EitherType operator+(std::int64_t at) const {
    return {fp32 == nullptr ? nullptr : fp32 + at, bf16 == nullptr ? nullptr : bf16 + at};
  }
  const void* address() const {
    return visit([](const auto* numbers) -> const void* { return numbers; });
  }
  std::int64_t number_bytes() const { return bf16 != nullptr ? sizeof(Bf16) : sizeof(float); }
  // Calls body(numbers) with the pointer that is set; with a null float* if the array is absent.
  template <typename Body>
  auto visit(const Body& body) const {
    return bf16 != nullptr ? body(bf16) : body(fp32);
  }
};

using Numbers = EitherType<const float, const Bf16>;
using MutableNumbers = EitherType<float, Bf16>;

}  // namespace etc::ops::cpu

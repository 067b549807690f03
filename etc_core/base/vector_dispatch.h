// Run-time choice among the versions that Highway compiles of a function, one per instruction set.
//
// Highway's own choice (HWY_EXPORT, HWY_DYNAMIC_DISPATCH) needs its shared library, which measures the processor's clock
// for 5 ms at every start of the program. With ETC_DISPATCH only Highway's headers are needed.
#pragma once

#include <cstddef>

#include "etc_core/base/cpu_features.h"

namespace etc {

// The version for this processor and the limit ETC_MAX_CPU: baseline (AVX2 or NEON), or that for AVX-512.
template <class Function>
Function* version_for_cpu(Function* baseline, Function* avx512) {
  return cpu_has_avx512_vectors() ? avx512 : baseline;
}

// Where no version for AVX-512 is compiled: sanitizer builds, other processors.
template <class Function>
Function* version_for_cpu(Function* baseline, std::nullptr_t) {
  return baseline;
}

}  // namespace etc

// ETC_DISPATCH(function)(arguments…): calls the version for this processor of a function that is defined in HWY_NAMESPACE
// within the namespace of the call. The caller includes hwy/foreach_target.h, then hwy/highway.h.
#define ETC_DISPATCH(function) (*::etc::version_for_cpu(&HWY_STATIC_DISPATCH(function), HWY_CHOOSE_AVX3(function)))

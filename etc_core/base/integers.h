// Division and rounding of sizes. Header-only, C++17 and constexpr, because kernels of every backend use it.
#pragma once

#include <type_traits>

namespace etc {

namespace integers_detail {
// The common type of both arguments. Mixing signed and unsigned is refused, because it would convert silently.
template <typename A, typename B>
using Common =
    std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B> && std::is_signed_v<A> == std::is_signed_v<B>,
                     std::common_type_t<A, B>>;
}  // namespace integers_detail

// How many steps cover `size`: size / step, rounded up. size >= 0, step > 0.
template <typename A, typename B>
constexpr integers_detail::Common<A, B> ceil_div(A size, B step) {
  return (size + step - 1) / step;
}

// The first multiple of `step` that is not below `size`. size >= 0, step > 0.
template <typename A, typename B>
constexpr integers_detail::Common<A, B> round_up(A size, B step) {
  return ceil_div(size, step) * step;
}

}  // namespace etc

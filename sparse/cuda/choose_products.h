// From a call's precision, head size and terms to the kernels' template arguments: the one list of what is compiled.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sparse/cuda/launch.h"
#include "sparse/cuda/products.h"
#include "sparse/cuda/score_terms.h"

namespace etc::sparse::cuda {

// QueryProducts: of the backward kernel that goes by queries, which holds most at a time.
template <typename Products, typename QueryProducts = Products>
struct Chosen {
  using Type = Products;
  using QueryGradients = QueryProducts;
};

// Calls run(Chosen<Products>) for operands of Element: float, or std::uint32_t for bf16.
template <typename Element, typename Run>
void choose_products(int head_size, const Run& run) {
  // Every instance named here is compiled, with and without terms.
  if constexpr (std::is_same_v<Element, float>) {
    // Accumulators of 8 or 16 tiles: a thread's registers bound how many components it may own.
    return head_size <= 64 ? run(Chosen<Fp32Products<8>>{}) : run(Chosen<Fp32Products<16>>{});
  } else {
    switch (bf16_width(head_size)) {
      case 16:
        return run(Chosen<Bf16Products<1>>{});
      case 32:
        return run(Chosen<Bf16Products<2>>{});
      case 64:
        return run(Chosen<Bf16Products<4>>{});
      default:
        // The widest head does not leave registers for two operands: there they come from shared memory.
        return run(Chosen<Bf16Products<8>, StagedBf16Products<8>>{});
    }
  }
}

// A type as a value: lambdas take values.
template <typename ChosenTerms>
struct TermsTag {
  using Type = ChosenTerms;
};

// Calls run(TermsTag<Terms>): a model without a relative table runs kernels in which there is none.
template <typename Run>
void choose_terms(const AttentionSizes& sizes, const Run& run) {
  if (sizes.labels > 0) return run(TermsTag<LabelTerms>{});
  run(TermsTag<NoTerms>{});
}

}  // namespace etc::sparse::cuda

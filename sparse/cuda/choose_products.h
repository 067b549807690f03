// Selects the kernels' template arguments from a call's precision, head size and terms: the only list of instances.
//
// C++17: device code reads this header.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sparse/cuda/launch.h"
#include "sparse/cuda/pairwise_terms.h"
#include "sparse/cuda/products.h"
#include "sparse/cuda/score_terms.h"

namespace etc::sparse::cuda {

// QueryProducts: for the backward kernel by queries, which needs the most registers. PairwiseProducts: for all kernels
// with pairwise terms, which need even more.
template <typename Products, typename QueryProducts = Products, typename PairwiseProducts = Products>
struct Chosen {
  template <typename Terms>
  using Type = std::conditional_t<Terms::kPairwise, PairwiseProducts, Products>;
  template <typename Terms>
  using QueryGradients = std::conditional_t<Terms::kPairwise, PairwiseProducts, QueryProducts>;
};

// Calls run(Chosen<Products>) for operands of Element: float, or std::uint32_t for bf16.
template <typename Element, typename Run>
void choose_products(int head_size, const Run& run) {
  // Every instance named here is compiled, with and without terms.
  if constexpr (std::is_same_v<Element, float>) {
    // Accumulators of 8 or 16 tiles: a thread's registers limit how many components it can own.
    using Wide = Fp32Products<16>;
    using WidePairwise = Fp32Products<kMaxPairwiseHead / 8>;
    return head_size <= 64 ? run(Chosen<Fp32Products<8>>{}) : run(Chosen<Wide, Wide, WidePairwise>{});
  } else {
    switch (bf16_width(head_size)) {
      case 16:
        return run(Chosen<Bf16Products<1>>{});
      case 32:
        return run(Chosen<Bf16Products<2>>{});
      case 64:
        return run(Chosen<Bf16Products<4>>{});
      default:
        // The widest head leaves no registers for two operands, so they are read from shared memory.
        return run(Chosen<Bf16Products<8>, StagedBf16Products<8>>{});
    }
  }
}

// Grid size y of a launch over a list: one block per head, or one if each entry names its head.
inline std::int64_t heads_of_grid(const AttentionSizes& sizes, const Span<const std::int32_t>& own_heads) {
  return own_heads.size > 0 ? 1 : sizes.heads;
}

// A type wrapped in a value, since lambdas take values.
template <typename ChosenTerms>
struct TermsTag {
  using Type = ChosenTerms;
};

// Calls run(TermsTag<Terms>): a model without a relative table runs kernels compiled without terms. Pairwise terms
// exist only with fp32 products.
template <typename Element, typename Run>
void choose_terms(const AttentionSizes& sizes, const Run& run) {
  if constexpr (std::is_same_v<Element, float>) {
    if (sizes.pairwise) return run(TermsTag<PairwiseTerms>{});
  }
  if (sizes.labels > 0) return run(TermsTag<LabelTerms>{});
  run(TermsTag<NoTerms>{});
}

}  // namespace etc::sparse::cuda

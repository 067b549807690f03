// Launches of the backward kernels.
#include "sparse/cuda/choose_products.h"
#include "sparse/cuda/key_gradients.h"
#include "sparse/cuda/launch.h"
#include "sparse/cuda/query_gradients.h"
#include "sparse/cuda/reduce_kernels.h"

namespace etc::sparse::cuda {

namespace {

// Launches both kernels for one precision; head size and terms select the instance.
template <typename Element>
void launch_any(BackwardParams<Element> params, void* stream) {
  choose_products<Element>(params.sizes.head_size, [&](auto chosen) {
    choose_terms<Element>(params.sizes, [&](auto tag) {
      using Terms = typename decltype(tag)::Type;
      using Products = typename decltype(chosen)::template Type<Terms>;
      // The kernel by queries needs the most registers, so the widest heads use another kind of products there.
      using QueryProducts = typename decltype(chosen)::template QueryGradients<Terms>;
      const std::int64_t heads = heads_of_grid(params.sizes, params.work.own_heads.items);
      // The kernel by keys runs first, because it reads C and dC as written by the layer above.
      std::int64_t shared = fit_shared<KeyGradientTiles<Products>>(params.sizes);
      simt::launch<KeyGradientKernel<Products, Terms>>({params.work.key_items.size, heads, 1, shared}, params, stream);
      shared = fit_shared<QueryGradientTiles<QueryProducts>>(params.sizes);
      const std::int64_t parts = ceil_div(params.work.items.size, Terms::kPairwise ? params.partials.items : 1);
      simt::launch<QueryGradientKernel<QueryProducts, Terms>>({parts, heads, 1, shared}, params, stream);
    });
  });
}

}  // namespace

void launch_delta(const DeltaParams& params, void* stream) {
  simt::launch<DeltaKernel>({DeltaKernel::blocks(params.sizes.queries), params.sizes.heads, 1, 0}, params, stream);
}

void launch_backward(const BackwardParams<float>& params, void* stream) {
  launch_any(params, stream);
}

void launch_backward(const BackwardParams<std::uint32_t>& params, void* stream) {
  launch_any(params, stream);
}

void launch_sum_queries(const SumQueriesParams& params, void* stream) {
  simt::launch<SumQueriesKernel>({params.split_queries.size, heads_of_grid(params.sizes, params.own_heads), 1, 0},
                                 params, stream);
}

void launch_sum_keys(const SumKeysParams& params, void* stream) {
  simt::launch<SumKeysKernel>({params.split_keys.size, heads_of_grid(params.sizes, params.own_heads), 1, 0}, params,
                              stream);
}

std::int64_t relative_parts(std::int64_t queries) {
  return RelativeKernel::parts(queries);
}

void launch_relative(const RelativeParams& params, void* stream) {
  simt::launch<RelativeKernel>({RelativeKernel::parts(params.sizes.queries), params.sizes.heads, 1, 0}, params, stream);
}

void launch_table_sum(const TableSumParams& params, void* stream) {
  simt::launch<TableSumKernel>({TableSumKernel::blocks(params), params.table_heads, 1, 0}, params, stream);
}

}  // namespace etc::sparse::cuda

// Launches of the forward kernels, and of the kernels before and after them.
#include "sparse/cuda/choose_products.h"
#include "sparse/cuda/forward_kernels.h"
#include "sparse/cuda/launch.h"
#include "sparse/cuda/prepare_kernels.h"

namespace etc::sparse::cuda {

namespace {

// Launches the kernel for one precision; head size and terms select the instance.
template <typename Element>
void launch_any(ForwardParams<Element> params, void* stream) {
  choose_products<Element>(params.sizes.head_size, [&](auto chosen) {
    choose_terms<Element>(params.sizes, [&](auto tag) {
      using Terms = typename decltype(tag)::Type;
      using Products = typename decltype(chosen)::template Type<Terms>;
      using Kernel = ForwardKernel<Products, Terms>;
      // The shared memory decides where the terms' table is stored and whether tiles are prefetched.
      const std::int64_t shared = fit_shared<ForwardTiles<Products>>(params.sizes);
      simt::launch<Kernel>(
          {params.work.items.size, heads_of_grid(params.sizes, params.work.own_heads.items), 1, shared}, params,
          stream);
    });
  });
}

}  // namespace

void launch_convert(const ConvertParams& params, void* stream) {
  simt::launch<ConvertKernel>({ConvertKernel::blocks(params.rows, params.width), params.heads, 1, 0}, params, stream);
}

void launch_table(const TableParams& params, void* stream) {
  simt::launch<TableKernel>({params.group_rows.size, params.sizes.heads, 1, 0}, params, stream);
}

void launch_forward(const ForwardParams<float>& params, void* stream) {
  launch_any(params, stream);
}

void launch_forward(const ForwardParams<std::uint32_t>& params, void* stream) {
  launch_any(params, stream);
}

void launch_combine(const CombineParams& params, void* stream) {
  simt::launch<CombineKernel>({params.split_queries.size, heads_of_grid(params.sizes, params.own_heads), 1, 0}, params,
                              stream);
}

}  // namespace etc::sparse::cuda

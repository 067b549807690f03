// Launches of the forward kernels, and of what comes before and after them.
#include "sparse/cuda/forward_kernels.h"
#include "sparse/cuda/launch.h"
#include "sparse/cuda/prepare_kernels.h"

namespace etc::sparse::cuda {

namespace {

template <typename Products>
void launch_with(ForwardParams<typename Products::Element> params, void* stream) {
  const std::int64_t shared = fit_shared<ForwardTiles<Products>, Products>(params.sizes);
  simt::launch<ForwardKernel<Products>>({params.work.items.size, params.sizes.heads, 1, shared}, params, stream);
}

}  // namespace

void launch_convert(const ConvertParams& params, void* stream) {
  simt::launch<ConvertKernel>({ConvertKernel::blocks(params.rows, params.width), params.heads, 1, 0}, params, stream);
}

void launch_table(const TableParams& params, void* stream) {
  simt::launch<TableKernel>({params.group_rows.size, params.sizes.heads, 1, 0}, params, stream);
}

void launch_forward(const ForwardParams<float>& params, void* stream) {
  if (params.sizes.head_size <= 64) {
    launch_with<Fp32Products<8>>(params, stream);
  } else {
    launch_with<Fp32Products<16>>(params, stream);
  }
}

void launch_forward(const ForwardParams<std::uint32_t>& params, void* stream) {
  switch (bf16_width(params.sizes.head_size)) {
    case 16:
      return launch_with<Bf16Products<1>>(params, stream);
    case 32:
      return launch_with<Bf16Products<2>>(params, stream);
    case 64:
      return launch_with<Bf16Products<4>>(params, stream);
    default:
      return launch_with<Bf16Products<8>>(params, stream);
  }
}

void launch_combine(const CombineParams& params, void* stream) {
  simt::launch<CombineKernel>({params.split_queries.size, params.sizes.heads, 1, 0}, params, stream);
}

}  // namespace etc::sparse::cuda

// The kernels of the usual head size, D = 64 in bf16, for the compile-time gate.
#include "sparse/cuda/forward_kernels.h"
#include "sparse/cuda/key_gradients.h"
#include "sparse/cuda/query_gradients.h"

namespace etc::sparse::cuda {

void instantiate_usual_kernels() {
  using Products = Bf16Products<4>;
  simt::launch<ForwardKernel<Products, LabelTerms>>({}, {}, nullptr);
  simt::launch<KeyGradientKernel<Products, LabelTerms>>({}, {}, nullptr);
  simt::launch<QueryGradientKernel<Products, LabelTerms>>({}, {}, nullptr);
}

}  // namespace etc::sparse::cuda

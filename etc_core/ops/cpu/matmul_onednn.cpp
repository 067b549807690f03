// The only file that includes oneDNN.
//
// It uses the library's plain matrix product, which exists unchanged in versions 2 and 3. Measured on tiles of 64 rows
// and 192 columns (AVX-512, one core) it runs at the rate of the matmul primitive on one large product, needs no
// weights in an opaque order and no cache of primitives, and its rows do not change with their position in the tile.
#include <omp.h>

#include <oneapi/dnnl/dnnl.h>

#include "etc_core/base/error.h"
#include "etc_core/ops/cpu/tile_product.h"

namespace etc::ops::cpu {

namespace {

// oneDNN asks OpenMP how many threads it may use; inside a parallel region the answer is one already.
class OneThread {
 public:
  OneThread() : before_(omp_in_parallel() ? 0 : omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace

void tile_product(Transpose transpose_a, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                  std::int64_t lda, const float* b, std::int64_t ldb, bool add, float* y, std::int64_t ldy) {
  const OneThread one_thread;
  const dnnl_status_t status = dnnl_sgemm(transpose_a == Transpose::yes ? 'T' : 'N', 'N', m, n, k, 1.0f, a, lda, b, ldb,
                                          add ? 1.0f : 0.0f, y, ldy);
  if (status != dnnl_success) {
    fail("linear", "oneDNN refused a product of m={}, n={}, k={}, lda={}, ldb={}, ldy={} (status {})", m, n, k, lda,
         ldb, ldy, static_cast<int>(status));
  }
}

}  // namespace etc::ops::cpu

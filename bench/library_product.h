// oneDNN called in the usual way, on all threads; our own GEMMs are compared with it.
#pragma once

#include <cstdint>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::bench {

// y [m, n] = x [m, k]·W [k, n] by one primitive; weights are reordered once into the library's preferred layout. Result
// bits depend on m and on the number of threads. Throws dnnl::error when the library reports an error.
class LibraryProduct : NotCopied {
 public:
  LibraryProduct(std::int64_t m, std::int64_t n, std::int64_t k, const float* weight);
  ~LibraryProduct();

  void run(const float* x, float* y) const;

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

// c [batch, m, n] = a [batch, m, k]·b [batch, k, n] by one primitive, on its own arrays. A transposed operand is stored
// with its last two dimensions exchanged.
struct BatchedShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
};

class BatchedLibraryProduct : NotCopied {
 public:
  explicit BatchedLibraryProduct(const BatchedShape& shape);
  ~BatchedLibraryProduct();

  void run();

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace etc::bench

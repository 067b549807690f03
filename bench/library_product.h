// oneDNN called the way people call it, on all threads: what the engine's own products are measured beside.
#pragma once

#include <cstdint>
#include <memory>

#include "etc_core/base/not_copied.h"

namespace etc::bench {

// y [m, n] = x [m, k]·W [k, n] by one primitive, weights reordered once as the library likes best. Its bits depend on m
// and on the number of threads. Throws dnnl::error when the library refuses.
class LibraryProduct : NotCopied {
 public:
  LibraryProduct(std::int64_t m, std::int64_t n, std::int64_t k, const float* weight);
  ~LibraryProduct();

  void run(const float* x, float* y) const;

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

// c [batch, m, n] = a [batch, m, k]·b [batch, k, n] by one primitive, on arrays of its own. A transposed operand lies in
// memory with its last two dimensions exchanged.
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

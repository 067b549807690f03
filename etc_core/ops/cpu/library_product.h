// One call of the matrix library over a whole product: what the tiles of linear() are measured against.
#pragma once

#include <cstdint>
#include <memory>

namespace etc::ops::cpu {

// y [m, n] = x [m, k]·W [k, n] by one primitive on all threads, weights reordered once as the library likes best.
// For benchmarks: its bits depend on m and on the number of threads.
class LibraryProduct {
 public:
  LibraryProduct(std::int64_t m, std::int64_t n, std::int64_t k, const float* weight);
  ~LibraryProduct();
  LibraryProduct(const LibraryProduct&) = delete;
  LibraryProduct& operator=(const LibraryProduct&) = delete;

  void run(const float* x, float* y) const;

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace etc::ops::cpu

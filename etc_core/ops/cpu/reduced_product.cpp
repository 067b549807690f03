#include "etc_core/ops/cpu/reduced_product.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "etc_core/ops/cpu/reduced_kernel.h"

namespace etc::ops::cpu {

namespace {

const ReducedKernel& kernel_of(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k) {
  using Key = std::tuple<ComputeType, std::int64_t, std::int64_t, std::int64_t>;
  static std::mutex mutex;
  static std::map<Key, std::unique_ptr<ReducedKernel>> kernels;
  const std::lock_guard lock(mutex);
  const Key key(compute, m, n, k);
  auto place = kernels.find(key);
  if (place == kernels.end()) {
    std::unique_ptr<ReducedKernel> kernel = amx_kernel(compute, m, n, k);
    if (kernel == nullptr) kernel = library_kernel(compute, m, n, k);
    place = kernels.emplace(key, std::move(kernel)).first;
  }
  return *place->second;
}

}  // namespace

ReducedProduct::ReducedProduct(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k)
    : kernel_(&kernel_of(compute, m, n, k)) {}

std::int64_t ReducedProduct::row_bytes() const {
  return kernel_->row_bytes();
}

std::int64_t ReducedProduct::group_cols() const {
  return kernel_->group_cols();
}

std::int64_t ReducedProduct::packed_bytes() const {
  return kernel_->packed_bytes();
}

std::int64_t ReducedProduct::scratch_bytes() const {
  return kernel_->scratch_bytes();
}

bool ReducedProduct::packs_like(const ReducedProduct& other) const {
  return kernel_->packs_like(*other.kernel_);
}

void ReducedProduct::pack(const void* w, void* packed) const {
  kernel_->pack(w, packed);
}

void ReducedProduct::run(const void* x, const void* packed, std::int64_t first_col, void* scratch, void* y) const {
  kernel_->run(x, packed, first_col, scratch, y);
}

ReducedUse::ReducedUse(const ReducedProduct& product) : kernel_(product.kernel_) {
  kernel_->begin();
}

ReducedUse::~ReducedUse() {
  kernel_->end();
}

}  // namespace etc::ops::cpu

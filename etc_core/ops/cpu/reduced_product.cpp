#include "etc_core/ops/cpu/reduced_product.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/cpu/reduced_kernel.h"

namespace etc::ops::cpu {

namespace {

// The first kernel that this processor supports: matrix tiles, dot products of vectors, 16-bit pairs (int8 only; bf16
// without bf16 instructions would be slower than fp32).
std::unique_ptr<ReducedKernel> best_kernel(ComputeType compute, std::int64_t n, std::int64_t k) {
  if (auto kernel = amx_kernel(compute, n, k)) return kernel;
  if (auto kernel = avx512_kernel(compute, n, k)) return kernel;  // none for fp32
  if (compute == ComputeType::int8) return int8_pairs_kernel(n, k);
  fail("linear", "no {} products on this processor ({}): asked for weights of [{}, {}] (compute in fp32)",
       compute_type_name(compute), instruction_set(), k, n);
}

// Kernels are created once per shape and kept until the program ends, since a network has few shapes. The lock is held
// only for the look-up.
const ReducedKernel& kernel_of(ComputeType compute, std::int64_t n, std::int64_t k) {
  using Key = std::tuple<ComputeType, std::int64_t, std::int64_t>;
  static std::mutex mutex;
  static std::map<Key, std::unique_ptr<ReducedKernel>> kernels;
  const std::lock_guard lock(mutex);
  const Key key(compute, n, k);
  auto place = kernels.find(key);
  if (place == kernels.end()) place = kernels.emplace(key, best_kernel(compute, n, k)).first;
  return *place->second;
}

}  // namespace

bool fp32_in_parts() {
  return cpu_has_amx(ComputeType::bf16);
}

ReducedProduct::ReducedProduct(ComputeType compute, std::int64_t n, std::int64_t k)
    : kernel_(&kernel_of(compute, n, k)) {}

std::int64_t ReducedProduct::row_bytes() const {
  return kernel_->row_bytes();
}

std::int64_t ReducedProduct::part_bytes() const {
  return kernel_->part_bytes();
}

std::int64_t ReducedProduct::group_cols() const {
  return kernel_->group_cols();
}

std::int64_t ReducedProduct::packed_bytes() const {
  return kernel_->packed_bytes();
}

std::int64_t ReducedProduct::scratch_bytes(std::int64_t rows) const {
  return kernel_->scratch_bytes(rows);
}

void ReducedProduct::pack(const void* w, void* packed) const {
  kernel_->pack(w, packed);
}

void ReducedProduct::round_and_pack(const PanelBlock& w, void* packed) const {
  kernel_->round_and_pack(w, packed);
}

void ReducedProduct::run(const ReducedRun& of) const {
  kernel_->run(of);
}

// Begin and end of a task's products: AMX configures and releases its tiles; the other kernels do nothing.
ReducedUse::ReducedUse(const ReducedProduct& product) : kernel_(product.kernel_) {
  kernel_->begin();
}

ReducedUse::~ReducedUse() {
  kernel_->end();
}

}  // namespace etc::ops::cpu

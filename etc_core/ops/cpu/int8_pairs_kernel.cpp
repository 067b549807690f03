// Products of bytes on sums of pairs (int8_pairs.h), where neither AMX nor the library has exact ones.
#include "etc_core/ops/cpu/int8_pairs.h"
#include "etc_core/ops/cpu/reduced_kernel.h"

namespace etc::ops::cpu {

namespace {

// Rows of x as they are, without gaps; all columns are one group, since the sums of a chunk go to y anyway.
class PairKernel final : public ReducedKernel {
 public:
  PairKernel(std::int64_t m, std::int64_t n, std::int64_t k) : m_(m), n_(n), k_(k) {}

  std::int64_t row_bytes() const override { return k_; }
  std::int64_t group_cols() const override { return n_; }
  std::int64_t packed_bytes() const override { return pair_weight_bytes(k_, n_); }
  std::int64_t scratch_bytes() const override { return pair_scratch_bytes(m_); }
  bool packs_like(const ReducedKernel& other) const override {
    const auto* pairs = dynamic_cast<const PairKernel*>(&other);
    return pairs != nullptr && pairs->n_ == n_ && pairs->k_ == k_;
  }

  void pack(const void* w, void* packed) const override {
    pack_pairs(static_cast<const std::int8_t*>(w), k_, n_, static_cast<std::int8_t*>(packed));
  }

  void run(const void* x, const void* packed, std::int64_t, void* scratch, void* y) const override {
    multiply_pairs({m_, n_, k_, static_cast<const std::uint8_t*>(x), k_, static_cast<const std::int8_t*>(packed),
                    static_cast<std::byte*>(scratch), static_cast<std::int32_t*>(y)});
  }

 private:
  std::int64_t m_, n_, k_;  // y [m, n] = x [m, k]·W [k, n]; packed weights follow from n and k alone
};

}  // namespace

std::unique_ptr<ReducedKernel> int8_pairs_kernel(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::make_unique<PairKernel>(m, n, k);
}

}  // namespace etc::ops::cpu

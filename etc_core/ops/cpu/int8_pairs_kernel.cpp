// Products of bytes by sums of pairs (int8_pairs.h), for processors with neither AMX nor AVX-512 VNNI.
#include "etc_core/ops/cpu/int8_pairs.h"
#include "etc_core/ops/cpu/reduced_kernel.h"

namespace etc::ops::cpu {

namespace {

// Rows of x are stored without gaps. All columns form one group, since the sums of a chunk are written to y anyway.
class PairKernel final : public ReducedKernel {
 public:
  PairKernel(std::int64_t n, std::int64_t k) : n_(n), k_(k) {}

  std::int64_t row_bytes() const override { return k_; }
  std::int64_t group_cols() const override { return n_; }
  std::int64_t packed_bytes() const override { return pair_weight_bytes(k_, n_); }
  std::int64_t scratch_bytes(std::int64_t rows) const override { return pair_scratch_bytes(rows); }

  void pack(const void* w, void* packed) const override {
    pack_pairs(static_cast<const std::int8_t*>(w), k_, n_, static_cast<std::int8_t*>(packed));
  }

  void run(const ReducedRun& of) const override {
    multiply_pairs({of.rows, n_, k_, static_cast<const std::uint8_t*>(of.x), k_,
                    static_cast<const std::int8_t*>(of.packed), static_cast<std::byte*>(of.scratch),
                    static_cast<std::int32_t*>(of.y)});
  }

 private:
  std::int64_t n_, k_;  // of W [k, n]
};

}  // namespace

std::unique_ptr<ReducedKernel> int8_pairs_kernel(std::int64_t n, std::int64_t k) {
  return std::make_unique<PairKernel>(n, k);
}

}  // namespace etc::ops::cpu

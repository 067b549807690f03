// Products on matrix tiles of our own (amx_tiles.h). The library's run as fast on operands in the caches nearest to the
// core; ours also when they come from farther away.
#include <algorithm>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cpu/amx_tiles.h"
#include "etc_core/ops/cpu/reduced_kernel.h"

namespace etc::ops::cpu {

#if defined(__x86_64__)

namespace {

class AmxKernel final : public ReducedKernel {
 public:
  AmxKernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k)
      : compute_(compute), m_(m), n_(n), k_(k) {}

  // The tile configuration is per thread state of the processor: once per task, not once per product.
  void begin() const override { begin_amx(); }
  void end() const override { end_amx(); }

  // An odd number of cache lines: the 16 rows of a tile then fall into as many sets of the first-level cache.
  std::int64_t row_bytes() const override { return (steps() | 1) * kAmxRowBytes; }
  std::int64_t group_cols() const override { return kAmxCols; }
  // The last group is padded with zero columns up to 32: its tiles are read as a whole.
  std::int64_t packed_bytes() const override { return ceil_div(n_, kAmxCols) * group_bytes(); }
  std::int64_t scratch_bytes() const override { return 0; }  // the sums live in the tile registers
  bool packs_like(const ReducedKernel& other) const override {
    const auto* tiles = dynamic_cast<const AmxKernel*>(&other);
    return tiles != nullptr && tiles->compute_ == compute_ && tiles->n_ == n_ && tiles->k_ == k_;
  }

  void pack(const void* w, void* packed) const override {
    if (compute_ == ComputeType::bf16) {
      pack_amx_bf16(static_cast<const std::uint16_t*>(w), k_, n_, static_cast<std::uint16_t*>(packed));
    } else {
      pack_amx_int8(static_cast<const std::uint8_t*>(w), k_, n_, static_cast<std::uint8_t*>(packed));
    }
  }

  void run(const void* x, const void* packed, std::int64_t first_col, void*, void* y) const override {
    const auto* group =
        static_cast<const char*>(packed) + first_col / kAmxCols * group_bytes();  // [steps, 2, 1024 bytes]
    const AmxProduct product{m_, std::min(kAmxCols, n_ - first_col), steps(), x, row_bytes(), group, y};
    if (compute_ == ComputeType::bf16) {
      amx_bf16(product);
    } else {
      amx_int8(product);
    }
  }

 private:
  // How many times 64 bytes of k there are: 32 bf16 numbers or 64 bytes each; zeros fill the last one.
  std::int64_t steps() const {
    const std::int64_t numbers = compute_ == ComputeType::bf16 ? kAmxRowBytes / 2 : kAmxRowBytes;
    return ceil_div(k_, numbers);
  }
  // Packed weights of 32 columns: per step the tile of columns 0-15, then that of columns 16-31.
  std::int64_t group_bytes() const { return steps() * 2 * kAmxTileBytes; }

  ComputeType compute_;
  std::int64_t m_, n_, k_;
};

}  // namespace

std::unique_ptr<ReducedKernel> amx_kernel(ComputeType compute, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (!cpu_has_amx(compute)) return nullptr;
  return std::make_unique<AmxKernel>(compute, m, n, k);
}

#else

std::unique_ptr<ReducedKernel> amx_kernel(ComputeType, std::int64_t, std::int64_t, std::int64_t) {
  return nullptr;
}

#endif

}  // namespace etc::ops::cpu

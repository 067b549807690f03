// Our own products on packed words of weights (word_product.h). The library's products are as fast if the operands are
// in the first caches. Ours are also fast if the operands come from farther away, their sums are finished while they
// are in the first-level cache, and any number of rows uses the same packed weights with the same bits.
#include <algorithm>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/integers.h"
#include "etc_core/ops/cpu/reduced_kernel.h"
#include "etc_core/ops/cpu/word_product.h"

namespace etc::ops::cpu {

#if defined(__x86_64__)

namespace {

void nothing() {}

// The functions of one instruction set.
struct WordProducts {
  const WordLayout& layout;
  void (*bf16)(const WordProduct&);
  void (*int8)(const WordProduct&);
  void (*begin)();
  void (*end)();
};

constexpr WordProducts kAmx{kAmxWords, amx_bf16, amx_int8, begin_amx, end_amx};
// fp32 numbers in three bf16 parts, in place of bf16.
constexpr WordProducts kAmxOfParts{kAmxParts, amx_fp32, nullptr, begin_amx, end_amx};
constexpr WordProducts kAvx512{kAvx512Words, avx512_bf16, avx512_int8, nothing, nothing};

class WordKernel final : public ReducedKernel {
 public:
  WordKernel(const WordProducts& products, ComputeType compute, std::int64_t n, std::int64_t k)
      : products_(products), compute_(compute), n_(n), k_(k) {}

  // The tile configuration is processor state of the thread; it is set once per task, not once per product.
  void begin() const override { products_.begin(); }
  void end() const override { products_.end(); }

  // An odd number of cache lines, so that adjacent rows map to different sets of the first-level cache.
  std::int64_t row_bytes() const override { return ((products_.layout.parts * steps()) | 1) * kWordRowBytes; }
  std::int64_t part_bytes() const override { return steps() * kWordRowBytes; }
  std::int64_t group_cols() const override { return products_.layout.cols(); }
  // The last group is padded with zero columns: blocks are always read as a whole.
  std::int64_t packed_bytes() const override { return ceil_div(n_, group_cols()) * group_bytes(); }
  std::int64_t scratch_bytes(std::int64_t) const override { return 0; }  // the sums are kept in registers

  void pack(const void* w, void* packed) const override {
    if (compute_ != ComputeType::int8) {
      pack_words(static_cast<const std::uint16_t*>(w), k_, n_, products_.layout, static_cast<std::uint16_t*>(packed));
    } else {
      pack_words(static_cast<const std::uint8_t*>(w), k_, n_, products_.layout, static_cast<std::uint8_t*>(packed));
    }
  }

  void round_and_pack(const PanelBlock& w, void* packed) const override {
    round_to_words(w, k_, products_.layout, static_cast<std::uint16_t*>(packed));
  }

  void run(const ReducedRun& of) const override {
    const auto* group = static_cast<const char*>(of.packed) + of.first_col / group_cols() * group_bytes();
    WordProduct product;
    product.m = of.rows;
    product.cols = std::min(group_cols(), n_ - of.first_col);
    product.steps = steps();
    product.x = of.x;
    product.x_row_bytes = row_bytes();
    product.weights = group;
    product.y = of.y;
    product.y_row_bytes = of.y_row_bytes > 0 ? of.y_row_bytes : product.cols * kSumBytes;
    product.add = of.add;
    product.next = of.next;
    (compute_ == ComputeType::int8 ? products_.int8 : products_.bf16)(product);
  }

 private:
  // The number of steps of 64 bytes of k, 32 bf16 numbers or 64 bytes each; the last one is padded with zeros.
  std::int64_t steps() const { return ceil_div(k_ * (compute_ == ComputeType::int8 ? 1 : 2), kWordRowBytes); }
  std::int64_t group_bytes() const {
    return products_.layout.parts * steps() * products_.layout.blocks * kWordBlockBytes;
  }

  const WordProducts& products_;
  ComputeType compute_;
  std::int64_t n_, k_;
};

}  // namespace

std::unique_ptr<ReducedKernel> amx_kernel(ComputeType compute, std::int64_t n, std::int64_t k) {
  const bool of_parts = compute == ComputeType::fp32;
  if (!cpu_has_amx(of_parts ? ComputeType::bf16 : compute)) return nullptr;
  return std::make_unique<WordKernel>(of_parts ? kAmxOfParts : kAmx, compute, n, k);
}

std::unique_ptr<ReducedKernel> avx512_kernel(ComputeType compute, std::int64_t n, std::int64_t k) {
  if (!cpu_has_avx512(compute)) return nullptr;
  return std::make_unique<WordKernel>(kAvx512, compute, n, k);
}

#else

std::unique_ptr<ReducedKernel> amx_kernel(ComputeType, std::int64_t, std::int64_t) {
  return nullptr;
}

std::unique_ptr<ReducedKernel> avx512_kernel(ComputeType, std::int64_t, std::int64_t) {
  return nullptr;
}

#endif

}  // namespace etc::ops::cpu

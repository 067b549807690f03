// Dropout of one row of hidden states on vectors (Highway; per target).
#if defined(ETC_CORE_OPS_CPU_DROPOUT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ETC_CORE_OPS_CPU_DROPOUT_ROWS_INL_H_
#undef ETC_CORE_OPS_CPU_DROPOUT_ROWS_INL_H_
#else
#define ETC_CORE_OPS_CPU_DROPOUT_ROWS_INL_H_
#endif

#include "etc_core/ops/cpu/dropout_rows.h"
#include "etc_core/ops/cpu/philox-inl.h"
#include "etc_core/ops/cpu/scratch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// Dropout of a task's rows in order from first_row on: fill() draws the bits of the current row, apply() returns
// value/(1-rate) or 0 for a vector of its columns, next() moves to the next row. With rate 0 apply() is the identity.
class RowDropout {
 public:
  RowDropout(const HiddenDropout& dropout, std::int64_t first_row, std::int64_t cols)
      : rows_(dropout, first_row),
        cols_(cols),
        active_(rows_.active()),
        threshold_(rows_.threshold()),
        scale_(rows_.scale()),
        bits_(scratch_.take<std::uint32_t>(dropout_bits_room(cols))) {}

  void next() { rows_.next(); }
  HWY_INLINE void fill() {
    if (active_) dropout_bits(rows_.key(), 0, rows_.token(), cols_, bits_);
  }
  HWY_INLINE FloatVec apply(std::int64_t col, FloatVec value) const {
    if (!active_) return value;
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    // bits >= threshold, computed as max(bits, threshold) == bits, which needs no unsigned comparison.
    const auto bits = hn::LoadU(du, bits_ + col);
    const auto kept = hn::Eq(hn::Max(bits, hn::Set(du, threshold_)), bits);
    return hn::IfThenElseZero(hn::RebindMask(d, kept), hn::Mul(value, hn::Set(d, scale_)));
  }

 private:
  Scratch scratch_;
  DropoutRows rows_;
  std::int64_t cols_;
  bool active_;              // rate > 0
  std::uint32_t threshold_;  // rate · 2^32: a smaller word drops its element
  float scale_;              // 1/(1-rate), which preserves the expectation of an element
  std::uint32_t* bits_;      // [cols rounded up to whole vectors]
};

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

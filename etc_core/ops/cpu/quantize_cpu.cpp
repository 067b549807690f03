// Conversion of fp32 or bf16 rows to bf16, to bf16 parts, or to bytes with an offset of 128 (quantize.h).
//
// The reason for the offset: the fast instructions (VNNI, AMX) multiply unsigned by signed bytes, so x is shifted by
// 128 and becomes unsigned. 128 times the column sums of W are subtracted afterwards, exactly, in integers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "etc_core/ops/cpu/quantize_cpu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "etc_core/base/bf16-inl.h"
#include "etc_core/base/nearest_int-inl.h"
#include "etc_core/base/transpose-inl.h"
#include "etc_core/base/vector_dispatch.h"
#include "etc_core/ops/cpu/number_lanes-inl.h"
#include "etc_core/ops/cpu/quantize.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace etc::ops::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using UintTag = hn::RebindToUnsigned<FloatTag>;

void bf16_range(const float* x, std::int64_t size, Bf16* to) {
  round_row(x, size, to);
}

void split_range(const float* x, std::int64_t size, std::int64_t distance, Bf16* to) {
  split_row(x, size, distance, to);
}

// Some numbers of a row in the high halves of 32-bit lanes: rounded to bf16, as they are, or in three parts.
HWY_INLINE void high_halves(FirstLanes some, const float* from, hn::Vec<UintTag> (&parts)[1]) {
  const FloatTag d;
  parts[0] = hn::ShiftLeft<16>(etc::HWY_NAMESPACE::bf16_bits(d, some.load(d, from)));
}
HWY_INLINE void high_halves(FirstLanes some, const Bf16* from, hn::Vec<UintTag> (&parts)[1]) {
  parts[0] = hn::BitCast(UintTag(), some.load(FloatTag(), from));
}
HWY_INLINE void high_halves(FirstLanes some, const float* from, hn::Vec<UintTag> (&parts)[3]) {
  const FloatTag d;
  etc::HWY_NAMESPACE::split_in_bf16(d, some.load(d, from), parts);
}

// Two adjacent rows of x are first combined into words of 32 bits, so that the transposition moves half as many
// elements. It works on squares that fit the first-level cache:
//   x [32 rows, 64 columns] -> pairs [16, 64] -> 64 runs of 32 numbers of `to`, for each part
template <int kParts, typename Number>
void turn(const Number* x, std::int64_t stride, const TurnedRows& t) {
  constexpr std::int64_t kSquareRows = 32, kSquareCols = 64;
  const UintTag du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(du));
  HWY_ALIGN std::uint32_t pairs[kParts][kSquareRows / 2]
                               [kSquareCols];  // low half: the even row; high half: the odd one
  for (std::int64_t row = 0; row < t.depth; row += kSquareRows) {
    const std::int64_t count = (t.depth - row < kSquareRows ? t.depth - row : kSquareRows) / 2;  // of pairs of rows
    for (std::int64_t col = 0; col < t.cols; col += kSquareCols) {
      const std::int64_t width = t.cols - col < kSquareCols ? t.cols - col : kSquareCols;
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < width; j += lanes) {
          const FirstLanes some{static_cast<std::size_t>(width - j < lanes ? width - j : lanes)};
          const auto halves = [&](std::int64_t at, hn::Vec<UintTag>(&parts)[kParts]) HWY_ATTR {
            for (auto& part : parts) part = hn::Zero(du);
            if (at < t.rows) high_halves(some, x + at * stride + col + j, parts);
          };
          hn::Vec<UintTag> even[kParts], odd[kParts];
          halves(row + 2 * i, even);
          halves(row + 2 * i + 1, odd);
          for (int part = 0; part < kParts; ++part) {
            hn::Store(hn::Or(hn::ShiftRight<16>(even[part]), odd[part]), du, &pairs[part][i][j]);
          }
        }
      }
      // Sixteen columns of x, each 32 consecutive numbers of `to`.
      constexpr std::int64_t kBlock = etc::HWY_NAMESPACE::kTransposed;
      const std::int64_t whole = count == kBlock ? width / kBlock * kBlock : 0;
      for (int part = 0; part < kParts; ++part) {
        Bf16* const place = t.to + col * t.distance + part * t.depth + row;
        for (std::int64_t j = 0; j < whole; j += kBlock) {
          etc::HWY_NAMESPACE::transpose_block(reinterpret_cast<const float*>(&pairs[part][0][j]), kSquareCols,
                                              reinterpret_cast<float*>(place + j * t.distance), t.distance / 2);
        }
        for (std::int64_t j = whole; j < width; ++j) {
          // Column col + j of x as 2·count consecutive numbers of `to`.
          Bf16* const turned = place + j * t.distance;
          for (std::int64_t i = 0; i < count; ++i)
            std::memcpy(turned + 2 * i, &pairs[part][i][j], sizeof(std::uint32_t));
        }
      }
    }
  }
}

// Two passes over x [size], which stays in cache after the first: the largest magnitude, then the bytes. The sum of all
// magnitudes detects nan and infinity, which a maximum may lose (x86 returns the second operand if one is nan).
template <typename Number>
float quantize(const Number* x, std::int64_t size, std::uint8_t* to) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::uint8_t, FloatTag> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const AllLanes all;
  auto largest = hn::Zero(d), sum = hn::Zero(d), more = hn::Zero(d);
  std::int64_t i = 0;
  // Two sums, so that consecutive additions are independent.
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto first = hn::Abs(all.load(d, x + i)), second = hn::Abs(all.load(d, x + i + lanes));
    largest = hn::Max(largest, hn::Max(first, second));
    sum = hn::Add(sum, first);
    more = hn::Add(more, second);
  }
  for (; i + lanes <= size; i += lanes) {
    const auto value = hn::Abs(all.load(d, x + i));
    largest = hn::Max(largest, value);
    sum = hn::Add(sum, value);  // finite unless an element is not
  }
  const FirstLanes rest{static_cast<std::size_t>(size - i)};
  const auto last = hn::Abs(rest.load(d, x + i));
  largest = hn::Max(largest, last);
  sum = hn::Add(hn::Add(sum, more), last);
  const float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  // Not finite: a scale of nan makes the whole row of y nan, so the error becomes visible in the results.
  if (!std::isfinite(hn::GetLane(hn::SumOfLanes(d, sum)))) {
    for (std::int64_t j = 0; j < size; ++j) to[j] = 128;
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scale = max > 0 ? max / 127.0f : 1.0f;
  const auto inverse = hn::Set(d, 1.0f / scale);
  const auto shift = hn::Set(di, 128);
  const auto bytes = [&](hn::Vec<FloatTag> value) {
    return hn::DemoteTo(narrow, hn::Add(etc::HWY_NAMESPACE::nearest_int(hn::Mul(value, inverse)), shift));
  };
  for (i = 0; i + lanes <= size; i += lanes) hn::StoreU(bytes(all.load(d, x + i)), narrow, to + i);
  if (i < size) {
    HWY_ALIGN std::uint8_t end[hn::MaxLanes(FloatTag())];  // [lanes], only size - i of them used
    hn::StoreU(bytes(rest.load(d, x + i)), narrow, end);
    for (std::int64_t j = i; j < size; ++j) to[j] = end[j - i];
  }
  return scale;
}

void bf16_turned(const Numbers& x, std::int64_t stride, const TurnedRows& to) {
  x.visit([&](const auto* numbers) { turn<1>(numbers, stride, to); });
}

void split_turned(const float* x, std::int64_t stride, const TurnedRows& to) {
  turn<3>(x, stride, to);
}

float quantize_range(const Numbers& x, std::int64_t size, std::uint8_t* to) {
  return x.visit([&](const auto* numbers) { return quantize(numbers, size, to); });
}

}  // namespace HWY_NAMESPACE
}  // namespace etc::ops::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace etc::ops::cpu {

void round_to_bf16(const Numbers& x, std::int64_t size, Bf16* to) {
  if (x.bf16 != nullptr) {
    std::copy_n(x.bf16, size, to);
  } else {
    ETC_DISPATCH(bf16_range)(x.fp32, size, to);
  }
}

void round_to_bf16_turned(const Numbers& x, std::int64_t stride, const TurnedRows& turned) {
  ETC_DISPATCH(bf16_turned)(x, stride, turned);
}

void split_in_bf16(const float* x, std::int64_t size, std::int64_t depth, Bf16* to) {
  ETC_DISPATCH(split_range)(x, size, depth, to);
  for (int part = 0; part < 3; ++part) std::fill(to + part * depth + size, to + (part + 1) * depth, Bf16{});
}

void split_in_bf16_turned(const float* x, std::int64_t stride, const TurnedRows& turned) {
  ETC_DISPATCH(split_turned)(x, stride, turned);
}

float quantize_row(const Numbers& x, std::int64_t size, std::uint8_t* to) {
  return ETC_DISPATCH(quantize_range)(x, size, to);
}

}  // namespace etc::ops::cpu
#endif  // HWY_ONCE

// Software prefetch of rows.
//
// The rows of one head are far apart, which no hardware prefetcher follows, so kernels prefetch them. Too many
// prefetches at once stall, since a core has only about 16 line fill buffers. bf16 kernels process a group in the time
// that a hundred cache lines take to arrive; they therefore prefetch a few rows between steps.
#pragma once

#include <cstdint>

#include "sparse/cpu/head_rows.h"

namespace etc::sparse {

inline constexpr std::int64_t kLineBytes = 64;

// Some rows of one head as bytes.
struct RowBytes {
  const char* first = nullptr;
  std::int64_t stride = 0, size = 0;  // distance between rows, and size of a row
};

// Rows (or MutableRows) from `row` on.
template <typename AnyRows>
RowBytes bytes_of(const AnyRows& rows, const HeadColumns& columns, std::int64_t row) {
  const auto place = row_in(rows, columns, row);
  if (place.bf16 == nullptr) {
    constexpr auto kNumber = static_cast<std::int64_t>(sizeof(float));
    return {reinterpret_cast<const char*>(place.fp32), rows.stride * kNumber, columns.size * kNumber};
  }
  constexpr auto kNumber = static_cast<std::int64_t>(sizeof(Bf16));
  return {reinterpret_cast<const char*>(place.bf16), rows.stride * kNumber, columns.size * kNumber};
}

// Prefetches rows [begin, end) of one head, for reading. Always inline: GCC removes calls of a function that only
// prefetches, because it regards the function as having no effect.
__attribute__((always_inline)) inline void prefetch_rows(const Rows& rows, const HeadColumns& columns,
                                                         std::int64_t begin, std::int64_t end) {
  RowBytes of = bytes_of(rows, columns, begin);
  for (std::int64_t r = begin; r < end; ++r, of.first += of.stride) {
    for (std::int64_t at = 0; at < of.size; at += kLineBytes) __builtin_prefetch(of.first + at, 0, 2);
  }
}

// Whether rows are written with non-temporal stores: there are so many rows that none would still be in the cache when
// they are read, and heads begin and end at cache line boundaries. Such lines need neither be read before they are
// written nor be prefetched.
inline bool streams_rows(const MutableRows& rows, std::int64_t head_size) {
  // 1 MiB: more than an L2 cache keeps until the next operator reads it.
  constexpr std::int64_t kManyBytes = 1 << 20;
  const RowBytes of = bytes_of(rows, {0, head_size}, 0);
  return of.size % kLineBytes == 0 && of.stride % kLineBytes == 0 &&
         reinterpret_cast<std::uintptr_t>(of.first) % kLineBytes == 0 && rows.rows * of.stride >= kManyBytes;
}

// Consecutive columns of C that remain to be prefetched; they are read and written.
struct ColumnsAhead {
  const char* next = nullptr;
  std::int64_t bytes = 0;  // of a column; 0: nothing to prefetch

  __attribute__((always_inline)) void prefetch(std::int64_t columns) {
    const char* const end = next + columns * bytes;
    for (; next < end; next += kLineBytes) __builtin_prefetch(next, 1, 2);
  }
};

// Ranges of rows that remain to be prefetched. Ranges that do not fit are dropped, since prefetching is optional.
class RowsAhead {
 public:
  void clear() { count_ = at_ = 0, rows_ = 0; }
  std::int64_t rows() const { return rows_; }

  // Adds `count` rows of one head from `first` on, for reading or for writing.
  void add_read(const Rows& rows, const HeadColumns& columns, std::int64_t first, std::int64_t count) {
    add({bytes_of(rows, columns, first), count, false});
  }
  void add_written(const MutableRows& rows, const HeadColumns& columns, std::int64_t first, std::int64_t count) {
    add({bytes_of(rows, columns, first), count, true});
  }

  // Prefetches the next `count` rows.
  void prefetch(std::int64_t count) {
    for (; count > 0 && at_ < count_; --count, --rows_) {
      Range& s = ranges_[at_];
      for (std::int64_t at = 0; at < s.of.size; at += kLineBytes) {
        // The hint must be a constant, hence two calls.
        if (s.write) {
          __builtin_prefetch(s.of.first + at, 1, 2);
        } else {
          __builtin_prefetch(s.of.first + at, 0, 2);
        }
      }
      s.of.first += s.of.stride;
      if (--s.count == 0) ++at_;
    }
  }

 private:
  struct Range {
    RowBytes of;
    std::int64_t count;
    bool write;
  };
  void add(const Range& range) {
    if (range.count <= 0 || count_ == kMost) return;
    ranges_[count_++] = range;
    rows_ += range.count;
  }

  static constexpr unsigned kMost = 8;

  Range ranges_[kMost];
  unsigned count_ = 0, at_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace etc::sparse

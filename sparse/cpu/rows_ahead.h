// Asking memory for rows before they are needed.
//
// The rows of one head lie far apart, which no hardware prefetcher follows; so kernels ask. Who asks for much at once
// waits: a core has some 16 places for lines on their way. bf16 kernels, which are done with a group in the time of a
// hundred lines, therefore ask for a few rows between steps.
#pragma once

#include <cstdint>

#include "sparse/attention_types.h"

namespace etc::sparse {

// Whether rows are written past the caches: they are many, so that none would still be there when they are read, and
// heads begin and end on whole lines. The lines need not be read before they are written, then, nor asked for.
inline bool streams_rows(const MutableRows& rows, std::int64_t head_size) {
  // 1 MiB: beyond what a second-level cache keeps until the next operator reads it.
  constexpr std::int64_t kLineFloats = 16, kManyFloats = 1 << 18;
  return head_size % kLineFloats == 0 && rows.stride % kLineFloats == 0 &&
         reinterpret_cast<std::uintptr_t>(rows.data) % 64 == 0 && rows.rows * rows.stride >= kManyFloats;
}

// Stretches of rows still to be asked for. What does not fit is left out: asking is never needed.
class RowsAhead {
 public:
  void clear() { stretches_ = at_ = 0, rows_ = 0; }
  std::int64_t rows() const { return rows_; }

  // `count` rows of `size` floats, `stride` floats apart; to be read, or to be written.
  void add_read(const float* first, std::int64_t stride, std::int64_t count, std::int64_t size) {
    add({first, stride, count, size, false});
  }
  void add_written(const float* first, std::int64_t stride, std::int64_t count, std::int64_t size) {
    add({first, stride, count, size, true});
  }

  // Asks for the next `count` rows.
  void ask(std::int64_t count) {
    for (; count > 0 && at_ < stretches_; --count, --rows_) {
      Stretch& s = stretch_[at_];
      for (std::int64_t d = 0; d < s.size; d += kLineFloats) {
        // The hint must be a constant: two calls.
        if (s.write) {
          __builtin_prefetch(s.row + d, 1, 2);
        } else {
          __builtin_prefetch(s.row + d, 0, 2);
        }
      }
      s.row += s.stride;
      if (--s.count == 0) ++at_;
    }
  }

 private:
  struct Stretch {
    const float* row;
    std::int64_t stride, count, size;
    bool write;
  };
  void add(const Stretch& stretch) {
    if (stretch.count <= 0 || stretches_ == kMost) return;
    stretch_[stretches_++] = stretch;
    rows_ += stretch.count;
  }

  static constexpr unsigned kMost = 8;
  static constexpr std::int64_t kLineFloats = 16;

  Stretch stretch_[kMost];
  unsigned stretches_ = 0, at_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace etc::sparse

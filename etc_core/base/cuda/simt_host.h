// simt.h for host compilers: every operation calls the emulator (tests/support/simt), which runs a block's threads as
// fibers and checks their operations. Only tests link it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "etc_core/base/bf16.h"
#include "etc_core/base/cuda/span.h"
#include "etc_core/base/integers.h"

#define ETC_DEVICE inline
#define ETC_UNROLL
#define ETC_KEEP_LOOP

namespace etc::simt {

inline constexpr int kWarp = 32;

// A source position in a kernel, for messages and to distinguish barriers.
struct Site {
  const char* file;
  int line;
  // As a default argument, gives the position of the call.
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// Functions of the emulator. Each is called by the running thread and acts for it.
namespace host {
int thread_index();
std::int64_t block_index(int axis);
void sync_block(Site site);
void sync_warp(Site site);
std::uint32_t shuffle(std::uint32_t value, int lane, Site site);
bool any(bool predicate, Site site);
bool all(bool predicate, Site site);
// Checks an access to global memory; `bytes` at `place`, element i of a span of `size`.
void check_load(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, std::int64_t count,
                Site site);
void check_store(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, Site site);
void check_atomic(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, Site site);
// Reserves shared memory; gives its offset in the block.
std::uint32_t take_shared(std::int64_t bytes, Site site);
void load_shared(std::uint32_t offset, std::uint32_t bytes, void* value, Site site);
void store_shared(std::uint32_t offset, std::uint32_t bytes, const void* value, Site site);
[[noreturn]] void shared_out_of_bounds(std::int64_t i, std::int64_t count, Site site);
void copy_async(std::uint32_t offset, int bytes, const void* from, bool valid, Site site);
void copy_async_commit();
void copy_async_wait(int pending);
void load_matrix(std::uint32_t offset, bool transposed, std::uint32_t* r, Site site);
void mma(float* c, const std::uint32_t* a, const std::uint32_t* b, Site site);
void launch(const char* name, const Grid& grid, int threads, std::int64_t max_shared, void (*run)(const void*),
            const void* params);
}  // namespace host

inline int thread_index() {
  return host::thread_index();
}
inline int lane_index() {
  return host::thread_index() % kWarp;
}
// Uses a shuffle as on a device, so a call by only part of a warp is detected as an error.
inline int warp_index(Site site = Site::here()) {
  return static_cast<int>(host::shuffle(static_cast<std::uint32_t>(host::thread_index() / kWarp), 0, site));
}
inline std::int64_t block_x() {
  return host::block_index(0);
}
inline std::int64_t block_y() {
  return host::block_index(1);
}

inline void sync_block(Site site = Site::here()) {
  host::sync_block(site);
}
inline void sync_warp(Site site = Site::here()) {
  host::sync_warp(site);
}

template <typename T>
T shuffle(T value, int lane, Site site = Site::here()) {
  static_assert(sizeof(T) == 4, "shuffles move 32 bits");
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = host::shuffle(bits, lane, site);
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}
template <typename T>
T shuffle_xor(T value, int mask, Site site = Site::here()) {
  return shuffle(value, lane_index() ^ mask, site);
}
inline bool any(bool predicate, Site site = Site::here()) {
  return host::any(predicate, site);
}
inline bool all(bool predicate, Site site = Site::here()) {
  return host::all(predicate, site);
}

template <typename T>
std::remove_const_t<T> load(const Span<T>& span, std::int64_t i, Site site = Site::here()) {
  host::check_load(span.data, span.size, i, sizeof(T), 1, site);
  return span.data[i];
}
template <typename T>
void store(const Span<T>& span, std::int64_t i, T value, Site site = Site::here()) {
  static_assert(sizeof(T) % 4 == 0, "stores to global memory are whole words");
  host::check_store(span.data, span.size, i, sizeof(T), site);
  span.data[i] = value;
}
inline void raise(const Span<std::int32_t>& span, std::int64_t i, std::int32_t value, Site site = Site::here()) {
  host::check_atomic(span.data, span.size, i, sizeof(std::int32_t), site);
  if (span.data[i] < value) span.data[i] = value;
}

template <typename T>
class SharedTile {
 public:
  static_assert(sizeof(T) >= 2, "the emulator follows shared memory in steps of two bytes");
  SharedTile() = default;
  SharedTile(std::uint32_t offset, int count) : offset_(offset), count_(count) {}
  T load(int i, Site site = Site::here()) const {
    T value;
    host::load_shared(place(i, 1, site), sizeof(T), &value, site);
    return value;
  }
  void store(int i, T value, Site site = Site::here()) const {
    host::store_shared(place(i, 1, site), sizeof(T), &value, site);
  }
  // Elements [first, first + count), a tile of its own.
  SharedTile part(int first, int count, Site site = Site::here()) const {
    if (count > 0) place(first, count, site);
    return {offset_ + static_cast<std::uint32_t>(first) * static_cast<std::uint32_t>(sizeof(T)), count};
  }
  // Offset of element i in the block's memory; elements [i, i + count) must be inside.
  std::uint32_t place(int i, int count, Site site) const {
    if (i < 0 || i + count > count_) host::shared_out_of_bounds(i < 0 ? i : i + count - 1, count_, site);
    return offset_ + static_cast<std::uint32_t>(i) * static_cast<std::uint32_t>(sizeof(T));
  }

 private:
  std::uint32_t offset_ = 0;
  int count_ = 0;
};

class SharedArena {
 public:
  template <typename T>
  SharedTile<T> take(int count, Site site = Site::here()) {
    const std::uint32_t offset = used_;
    used_ += round_up(static_cast<std::uint32_t>(count) * static_cast<std::uint32_t>(sizeof(T)), 16u);
    host::take_shared(used_, site);
    return {offset, count};
  }

 private:
  std::uint32_t used_ = 0;
};

template <int kBytes, typename T, typename U>
void copy_async(const SharedTile<T>& to, int at, const Span<const U>& from, std::int64_t from_at, bool valid,
                Site site = Site::here()) {
  static_assert(kBytes == 4 || kBytes == 16, "cp.async sizes in use");
  if (valid) {
    host::check_load(from.data, from.size, from_at, sizeof(U), kBytes / static_cast<int>(sizeof(U)), site);
  }
  host::copy_async(to.place(at, kBytes / static_cast<int>(sizeof(T)), site), kBytes,
                   valid ? from.data + from_at : nullptr, valid, site);
}
inline void copy_async_commit() {
  host::copy_async_commit();
}
template <int kPending>
void copy_async_wait() {
  host::copy_async_wait(kPending);
}

using etc::Bf16;
inline Bf16 to_bf16(float value) {
  return {bf16_from_float(value)};
}
inline std::uint32_t pack_bf16(float low, float high) {
  return static_cast<std::uint32_t>(to_bf16(low).bits) | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
}
inline float low_bf16(std::uint32_t pair) {
  return float_from_bf16(pair & 0xffffu);
}
inline float high_bf16(std::uint32_t pair) {
  return float_from_bf16(pair >> 16);
}

inline void load_matrix(const SharedTile<Bf16>& tile, int at, std::uint32_t (&r)[4], Site site = Site::here()) {
  host::load_matrix(tile.place(at, 8, site), false, r, site);
}
inline void load_matrix_transposed(const SharedTile<Bf16>& tile, int at, std::uint32_t (&r)[4],
                                   Site site = Site::here()) {
  host::load_matrix(tile.place(at, 8, site), true, r, site);
}
inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                Site site = Site::here()) {
  const std::uint32_t b[2] = {b0, b1};
  host::mma(c, a, b, site);
}

inline float fma(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float multiply(float a, float b) {
  return a * b;
}
inline float add(float a, float b) {
  return a + b;
}
inline double exp(double x) {
  return std::exp(x);
}
inline double log(double x) {
  return std::log(x);
}
inline float exp2(float x) {
  return std::exp2(x);
}
inline float infinity() {
  return HUGE_VALF;
}
inline float log(float x) {
  return std::log(x);
}
inline float tanh(float x) {
  return std::tanh(x);
}
inline float sqrt(float x) {
  return std::sqrt(x);
}
inline std::int32_t nearest(float x) {
  // Converts like the device: values out of range become the nearest limit, nan becomes 0.
  if (!(x > -2147483648.0f)) return x == x ? INT32_MIN : 0;
  return x >= 2147483648.0f ? INT32_MAX : static_cast<std::int32_t>(std::lrint(x));
}

// There is only one stream, and the kernel has finished when this returns.
template <typename Kernel>
void launch(const Grid& grid, const typename Kernel::Params& params, void*) {
  host::launch(
      Kernel::name(), grid, Kernel::kThreads, Kernel::kMaxShared,
      [](const void* p) { Kernel::run(*static_cast<const typename Kernel::Params*>(p)); }, &params);
}

}  // namespace etc::simt

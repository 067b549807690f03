// simt.h for nvcc: thin wrappers over CUDA's own functions and PTX.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/runtime_errors.h"
#include "etc_core/base/cuda/span.h"
#include "etc_core/base/integers.h"

#define ETC_DEVICE __device__ __forceinline__
#define ETC_UNROLL _Pragma("unroll")
#define ETC_KEEP_LOOP _Pragma("unroll 1")

namespace etc::simt {

inline constexpr int kWarp = 32;

ETC_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
ETC_DEVICE int lane_index() {
  return static_cast<int>(threadIdx.x) % kWarp;
}
// Through a shuffle, so that the compiler knows it to be the same for the whole warp.
ETC_DEVICE int warp_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarp, 0);
}
ETC_DEVICE std::int64_t block_x() {
  return blockIdx.x;
}
ETC_DEVICE std::int64_t block_y() {
  return blockIdx.y;
}

ETC_DEVICE void sync_block() {
  __syncthreads();
}
ETC_DEVICE void sync_warp() {
  __syncwarp();
}

template <typename T>
ETC_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
template <typename T>
ETC_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
ETC_DEVICE bool any(bool predicate) {
  return __any_sync(0xffffffffu, predicate) != 0;
}
ETC_DEVICE bool all(bool predicate) {
  return __all_sync(0xffffffffu, predicate) != 0;
}

template <typename T>
ETC_DEVICE T load(const Span<const T>& span, std::int64_t i) {
  return span.data[i];
}
template <typename T>
ETC_DEVICE T load(const Span<T>& span, std::int64_t i) {
  return span.data[i];
}
template <typename T>
ETC_DEVICE void store(const Span<T>& span, std::int64_t i, T value) {
  span.data[i] = value;
}
ETC_DEVICE void raise(const Span<std::int32_t>& span, std::int64_t i, std::int32_t value) {
  atomicMax(span.data + i, value);
}

extern __shared__ __align__(16) unsigned char shared_block[];

// A typed part of the block's shared memory.
template <typename T>
class SharedTile {
 public:
  SharedTile() = default;
  ETC_DEVICE explicit SharedTile(unsigned char* place) : data_(reinterpret_cast<T*>(place)) {}
  ETC_DEVICE T load(int i) const { return data_[i]; }
  ETC_DEVICE void store(int i, T value) const { data_[i] = value; }
  ETC_DEVICE SharedTile part(int first, int) const {
    return SharedTile(reinterpret_cast<unsigned char*>(data_ + first));
  }
  ETC_DEVICE std::uint32_t address(int i) const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data_ + i));
  }

 private:
  T* data_ = nullptr;
};

// Divides shared memory in steps of 16 bytes; the host repeats the same sequence of calls to compute the size.
class SharedArena {
 public:
  template <typename T>
  ETC_DEVICE SharedTile<T> take(int count) {
    SharedTile<T> tile(shared_block + used_);
    used_ += round_up(count * static_cast<int>(sizeof(T)), 16);
    return tile;
  }

 private:
  int used_ = 0;
};

// Copies kBytes (4 or 16) from global to shared memory; unless `valid`, writes zeros and reads nothing.
template <int kBytes, typename T, typename U>
ETC_DEVICE void copy_async(const SharedTile<T>& to, int at, const Span<const U>& from, std::int64_t from_at,
                           bool valid) {
  static_assert(kBytes == 4 || kBytes == 16, "cp.async sizes in use");
  const int read = valid ? kBytes : 0;
  const void* source = from.data + (valid ? from_at : 0);
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to.address(at)), "l"(source), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.address(at)), "l"(source), "r"(read)
                 : "memory");
  }
}
ETC_DEVICE void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most kPending of this thread's copy groups are in flight; other threads see the data after sync_block.
template <int kPending>
ETC_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

using Bf16 = __nv_bfloat16;

// Two floats as one register, `low` in the low half, rounded to nearest even.
ETC_DEVICE std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
ETC_DEVICE Bf16 to_bf16(float value) {
  return __float2bfloat16_rn(value);
}
// The two numbers of a packed register as floats; exact.
ETC_DEVICE float low_bf16(std::uint32_t pair) {
  return __uint_as_float(pair << 16);
}
ETC_DEVICE float high_bf16(std::uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}

// Four 8x8 matrices of bf16: lane 8m+r gives the place of row r of matrix m (16 bytes, 16-byte aligned); r[m] holds
// elements (lane/4, 2*(lane%4)) and (lane/4, 2*(lane%4)+1) of matrix m, transposed: (2*(lane%4), lane/4) and
// (2*(lane%4)+1, lane/4).
ETC_DEVICE void load_matrix(const SharedTile<Bf16>& tile, int at, std::uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(tile.address(at))
               : "memory");
}
ETC_DEVICE void load_matrix_transposed(const SharedTile<Bf16>& tile, int at, std::uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(tile.address(at))
               : "memory");
}

// c += a b.   a [16, 16], b [16, 8], c [16, 8], in the register layout of mma.sync.m16n8k16:
//   a[0] (lane/4, 2*(lane%4)…+1)   a[1] row + 8   a[2] column + 8   a[3] row + 8, column + 8
//   b[0] (2*(lane%4)…+1, lane/4)   b[1] row + 8
//   c[0], c[1] (lane/4, 2*(lane%4)…+1)            c[2], c[3] row + 8
ETC_DEVICE void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

ETC_DEVICE float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
// Each rounds once: the compiler must not combine them into a fused multiply-add.
ETC_DEVICE float multiply(float a, float b) {
  return __fmul_rn(a, b);
}
ETC_DEVICE float add(float a, float b) {
  return __fadd_rn(a, b);
}
ETC_DEVICE double exp(double x) {
  return ::exp(x);
}
ETC_DEVICE double log(double x) {
  return ::log(x);
}
ETC_DEVICE float exp2(float x) {
  return exp2f(x);
}
ETC_DEVICE float infinity() {
  return __int_as_float(0x7f800000);
}
ETC_DEVICE float log(float x) {
  return logf(x);
}
ETC_DEVICE float tanh(float x) {
  return tanhf(x);
}
ETC_DEVICE float sqrt(float x) {
  return __fsqrt_rn(x);
}
ETC_DEVICE std::int32_t nearest(float x) {
  return __float2int_rn(x);
}  // ties to even

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, 1) entry(const __grid_constant__ typename Kernel::Params params) {
  Kernel::run(params);
}

template <typename Kernel>
void launch(const Grid& grid, const typename Kernel::Params& params, void* stream) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (grid.shared_bytes > 48 * 1024) {
    check_cuda(Kernel::name(), cudaFuncSetAttribute(entry<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                    static_cast<int>(Kernel::kMaxShared)));
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  entry<Kernel>
      <<<blocks, Kernel::kThreads, static_cast<std::size_t>(grid.shared_bytes), static_cast<cudaStream_t>(stream)>>>(
          params);
  check_cuda(Kernel::name(), cudaGetLastError());
  note_launch(Kernel::name());
}

}  // namespace etc::simt

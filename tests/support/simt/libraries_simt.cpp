// Replacements for the toolkit's libraries on an emulated device, in plain loops: cuBLASLt's GEMM
// (etc_core/ops/cuda/product_cublas.cpp) and Thrust's sorts (id_runs.cu, top_k_sort.cu).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/cuda/simt_host.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/cuda/id_runs.h"
#include "etc_core/ops/cuda/product.h"
#include "etc_core/ops/cuda/top_k_sort.h"
#include "tests/support/simt/device_loss.h"
#include "tests/support/simt/device_space.h"

namespace etc::ops::cuda {

namespace {

double number(const Factor& factor, ComputeType compute, std::int64_t row, std::int64_t col) {
  const std::int64_t at = factor.transposed ? col * factor.stride + row : row * factor.stride + col;
  if (compute == ComputeType::fp32) return static_cast<double>(static_cast<const float*>(factor.data)[at]);
  std::uint16_t bits;
  std::memcpy(&bits, static_cast<const std::byte*>(factor.data) + 2 * at, sizeof bits);
  return static_cast<double>(float_from_bf16(bits));
}

// Number i of an array of c's type.
float number(const void* data, ElementType type, std::int64_t i) {
  if (type == ElementType::fp32) return static_cast<const float*>(data)[i];
  return float_from_bf16(static_cast<const Bf16*>(data)[i].bits);
}

void put(void* data, ElementType type, std::int64_t i, float value) {
  if (type == ElementType::fp32) {
    static_cast<float*>(data)[i] = value;
  } else {
    static_cast<Bf16*>(data)[i] = {bf16_from_float(value)};
  }
}

// The tanh form, as in the library.
float gelu(float x) {
  return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}

// The library rejects these calls, so the replacement must reject them too.
void check(const Product& p) {
  if (p.add && (p.bias != nullptr || p.gelu)) fail("product", "a sum has neither bias nor gelu");
  if (p.pre_activation != nullptr && (!p.gelu || p.cols % 8 != 0)) fail("product", "pre_activation is not available");
  if (p.compute == ComputeType::bf16 && (p.a.stride % 8 != 0 || p.b.stride % 8 != 0)) {
    fail("product", "rows of bf16 must begin at 16 bytes");
  }
  if (p.c_type == ElementType::bf16 && p.compute != ComputeType::bf16) {
    fail("product", "a result in bf16 is not available beside factors in fp32");
  }
  if (p.c_type == ElementType::bf16 && (p.cols % 8 != 0 || p.c_stride % 8 != 0)) {
    fail("product", "rows of a result in bf16 must begin at 16 bytes");
  }
}

}  // namespace

void reserve_product_memory() {
  static auto* const bytes = new Bytes(kProductWorkspace, Purpose::scratch, Device::cuda);  // outlives static variables
  static_cast<void>(bytes);
}

void multiply(const Product& p) {
  check(p);
  if (!simt::begin_operation("product")) return;
  const simt::DeviceAccess access;
  // As in the library, the split of a sum depends on the number of rows, unless it must not be split.
  const std::int64_t part = p.whole_sums ? std::max<std::int64_t>(1, p.inner) : 1 + p.rows % 7;
  for (std::int64_t i = 0; i < p.rows; ++i) {
    for (std::int64_t j = 0; j < p.cols; ++j) {
      const std::int64_t at = i * p.c_stride + j;
      float z = p.add ? number(p.c, p.c_type, at) : 0.0f;
      for (std::int64_t first = 0; first < p.inner; first += part) {
        double sum = 0;
        for (std::int64_t k = first; k < std::min(p.inner, first + part); ++k) {
          sum += number(p.a, p.compute, i, k) * number(p.b, p.compute, k, j);
        }
        z += static_cast<float>(sum);
      }
      if (p.bias != nullptr) z += number(p.bias, p.c_type, j);
      if (p.pre_activation != nullptr) put(p.pre_activation, p.c_type, i * p.cols + j, z);
      put(p.c, p.c_type, at, p.gelu ? gelu(z) : z);
    }
  }
}

std::int64_t sort_ids(const simt::Span<std::int32_t>& ids, std::int64_t limit, const simt::Span<std::int32_t>& tokens,
                      const simt::Span<std::int32_t>& first, void*) {
  if (!simt::begin_operation("sort_ids")) return 0;
  const simt::DeviceAccess access;
  std::vector<std::int32_t> given(ids.data, ids.data + ids.size);
  for (std::int32_t& id : given) id = id < 0 || id > limit ? static_cast<std::int32_t>(limit) : id;
  std::iota(tokens.data, tokens.data + tokens.size, 0);
  const auto id_of = [&](std::int32_t token) { return given[static_cast<std::size_t>(token)]; };
  std::stable_sort(tokens.data, tokens.data + tokens.size, [&](auto a, auto b) { return id_of(a) < id_of(b); });
  std::int64_t distinct = 0;
  std::int32_t kept = 0;
  for (std::int64_t i = 0; i < ids.size; ++i) {
    ids.data[i] = id_of(tokens.data[i]);
    if (ids.data[i] >= limit) continue;
    if (i == 0 || ids.data[i] != ids.data[i - 1]) first.data[distinct++] = static_cast<std::int32_t>(i);
    kept = static_cast<std::int32_t>(i + 1);
  }
  first.data[distinct] = kept;
  return distinct;
}

void sort_top_k(const TopKSort& args, void*) {
  if (!simt::begin_operation("sort_top_k")) return;
  const simt::DeviceAccess access;
  for (std::int64_t entry = 0; entry < args.top.size; entry += args.k) {
    const std::int64_t list = entry / args.k, begin = args.offsets.data[list / args.cols];
    std::vector<Ranked> numbers;
    for (std::int64_t row = begin; row < args.offsets.data[list / args.cols + 1]; ++row) {
      numbers.push_back({static_cast<std::int32_t>(row - begin), args.z.data[row * args.cols + list % args.cols]});
    }
    std::stable_sort(numbers.begin(), numbers.end(), [](const Ranked& a, const Ranked& b) {
      const bool finite = std::isfinite(a.value);
      return finite && std::isfinite(b.value) ? a.value > b.value : !finite && std::isfinite(b.value);
    });
    numbers.resize(static_cast<std::size_t>(args.k));
    std::copy(numbers.begin(), numbers.end(), args.top.data + entry);
  }
}

}  // namespace etc::ops::cuda

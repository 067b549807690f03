#include "etc_core/nn/packed_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/large_blocks.h"
#include "etc_core/ops/rows_in_place.h"

namespace etc {

namespace {

// Copies a [rows, cols] block into columns of a wider matrix.
void copy_columns(const float* from, std::int64_t rows, std::int64_t cols, float* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_stride, from + row * cols, static_cast<std::size_t>(cols) * sizeof(float));
  }
}

// Whether the layer gives the same bits unpacked, and has values to read.
bool can_be_read_in_place(const Dense& dense) {
  return dense.layout == ops::WeightLayout::in_out && std::ranges::all_of(dense.parts, [&](const Dense::Part& part) {
           const Tensor& kernel = part.kernel->value;
           const bool whole_tiles = dense.parts.size() == 1 || part.kernel->shape[1] % ops::kColumnsInPlace == 0;
           return kernel && kernel.device() == Device::cpu && whole_tiles;
         });
}

}  // namespace

Dense PackedCache::packed(const Dense& dense) {
  if (!waiting_.empty() && compute_ == ComputeType::fp32 && dense.layout == ops::WeightLayout::in_out) return dense;
  std::vector<const Parameter*> kernels;
  std::uint64_t versions = 0;
  for (const Dense::Part& part : dense.parts) {
    kernels.push_back(part.kernel);
    versions += part.kernel->version + (part.bias != nullptr ? part.bias->version : 0);
  }
  std::unique_ptr<Entry>& entry = entries_[kernels];
  const bool other_type = entry != nullptr && entry->weights.compute != compute_ && kernels[0]->value;
  if (entry == nullptr || entry->versions != versions || other_type) {
    for (const Parameter* kernel : kernels) {
      if (!kernel->value) fail("encoder", "{} has no value yet (initialize or load the parameters)", kernel->name);
    }
    entry = std::make_unique<Entry>();
    entry->versions = versions;
    const std::int64_t in = dense.in(), out = dense.out();
    const Device device = kernels[0]->value.device();
    Tensor bias = Tensor::zeros({out}, Purpose::weights);
    std::int64_t column = 0;
    for (const Dense::Part& part : dense.parts) {
      if (part.bias != nullptr) {
        copy_bytes(Device::cpu, bias.data() + column, device, part.bias->value.data(),
                   part.bias->size() * static_cast<std::int64_t>(sizeof(float)));
      }
      column += part.kernel->shape[dense.layout == ops::WeightLayout::in_out ? 1 : 0];
    }
    entry->bias = bias.to(device);
    Tensor matrix = kernels[0]->value.to(Device::cpu);  // what all backends pack from
    if (dense.parts.size() > 1) {
      const Tensor joined = Tensor::empty({in, out}, Purpose::scratch);
      column = 0;
      for (const Parameter* kernel : kernels) {
        const std::int64_t cols = kernel->shape[1];
        copy_columns(kernel->value.to(Device::cpu).data(), in, cols, joined.data() + column, out);
        column += cols;
      }
      matrix = joined;
    }
    entry->weights = ops::pack_weights(device, {matrix.data(), in, out, dense.layout}, compute_);
  }
  Dense result = dense;
  result.packed = &entry->weights;
  result.packed_bias = entry->bias.data();
  return result;
}

void PackedCache::release_kernels(const std::vector<std::vector<Dense>>& layers, ComputeType compute) {
  set_compute(compute);
  waiting_.clear();
  for (const std::vector<Dense>& layer : layers) {
    for (const Dense& dense : layer) packed(dense);
    for (const Dense& dense : layer) {
      for (const Dense::Part& part : dense.parts) part.kernel->value = Tensor();
    }
  }
  large_blocks::release_kept();  // for int8 the sources were three quarters of the program's memory
  released_ = true;
}

void PackedCache::release_later(std::vector<std::vector<Dense>> layers, ComputeType compute) {
  const auto can_wait = [](const std::vector<Dense>& layer) {
    return std::ranges::all_of(layer, can_be_read_in_place);
  };
  if (compute != ComputeType::fp32 || !std::ranges::all_of(layers, can_wait)) return release_kernels(layers, compute);
  set_compute(compute);
  clear();
  waiting_ = std::move(layers);
  released_ = true;
}

void PackedCache::begin_pass(std::int64_t rows) {
  if (waiting_.empty() || rows <= ops::kRowsInPlace) return;
  const std::vector<std::vector<Dense>> layers = std::exchange(waiting_, {});
  release_kernels(layers, compute_);
}

void PackedCache::begin_training() {
  if (released_) fail("encoder", "the kernels were released: load the parameters into a new encoder to train");
  clear();
}

void PackedCache::clear() {
  entries_.clear();
}

}  // namespace etc

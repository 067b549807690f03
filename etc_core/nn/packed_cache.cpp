#include "etc_core/nn/packed_cache.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/large_blocks.h"

namespace etc {

namespace {

// Copies a [rows, cols] block into columns of a wider matrix.
void copy_columns(const float* from, std::int64_t rows, std::int64_t cols, float* to, std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_stride, from + row * cols, static_cast<std::size_t>(cols) * sizeof(float));
  }
}

}  // namespace

Dense PackedCache::packed(const Dense& dense) {
  std::vector<const Parameter*> kernels;
  std::uint64_t versions = 0;
  for (const Dense::Part& part : dense.parts) {
    kernels.push_back(part.kernel);
    versions += part.kernel->version + (part.bias != nullptr ? part.bias->version : 0);
  }
  std::unique_ptr<Entry>& entry = entries_[kernels];
  const bool other_type = entry != nullptr && entry->weights.compute != types_.compute && kernels[0]->value;
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
    Tensor matrix = kernels[0]->value.to(Device::cpu);  // all backends pack from host memory
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
    entry->weights = ops::pack_weights(device, {matrix.data(), in, out, dense.layout}, types_.compute);
  }
  Dense result = dense;
  result.packed = &entry->weights;
  result.packed_bias = entry->bias.data();
  return result;
}

void PackedCache::release_kernels(const std::vector<std::vector<Dense>>& layers, InferenceTypes types) {
  types_ = types;
  for (const std::vector<Dense>& layer : layers) {
    for (const Dense& dense : layer) packed(dense);
    for (const Dense& dense : layer) {
      for (const Dense::Part& part : dense.parts) part.kernel->value = Tensor();
    }
  }
  large_blocks::release_kept();  // with int8 the unpacked kernels were three quarters of the program's memory
  released_ = true;
}

void PackedCache::begin_training() {
  if (released_) fail("encoder", "the kernels were released: load the parameters into a new encoder to train");
  clear();
}

void PackedCache::clear() {
  entries_.clear();
}

}  // namespace etc

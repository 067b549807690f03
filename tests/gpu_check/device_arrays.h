// Numbers on a device that are filled and read on the host.
#pragma once

#include <vector>

#include "etc_core/tensor/tensor.h"
#include "tests/support/numbers.h"

namespace etc::gpu_check {

inline Tensor random_on(Device device, std::vector<std::int64_t> shape, std::uint64_t seed) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return Tensor::from(test::random_floats(count, seed), std::move(shape), Purpose::activations, device);
}

inline std::vector<float> values_of(const Tensor& tensor) {
  const Tensor host = tensor.to(Device::cpu);
  return {host.data(), host.data() + host.size()};
}

// The arrays that an operator reads and writes on one device. Every array starts with random numbers, and all of them
// are compared as its result, including those that it must not change.
class Arrays {
 public:
  explicit Arrays(Device device) : device_(device) {}
  Device device() const { return device_; }
  float* take(std::int64_t count) {
    arrays_.push_back(random_on(device_, {count}, arrays_.size() + 1));
    return arrays_.back().data();
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (const Tensor& array : arrays_) {
      const auto values = values_of(array);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  Device device_;
  std::vector<Tensor> arrays_;
};

}  // namespace etc::gpu_check

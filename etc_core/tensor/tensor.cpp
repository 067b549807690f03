#include "etc_core/tensor/tensor.h"

#include "etc_core/base/counting.h"
#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"

namespace etc {

namespace {

std::int64_t checked_count(const std::vector<std::int64_t>& shape) {
  for (const std::int64_t size : shape) {
    if (size < 0) fail("tensor", "sizes must not be negative, got {}", shape_text(shape));
  }
  return element_count(shape);
}

}  // namespace

Tensor Tensor::empty(std::vector<std::int64_t> shape, Purpose purpose, Device device, ElementType type) {
  Tensor result;
  result.size_ = checked_count(shape);
  result.shape_ = std::move(shape);
  result.device_ = device;
  result.purpose_ = purpose;
  result.type_ = type;
  const auto storage = std::make_shared<Bytes>(result.bytes(), purpose, device);
  result.data_ = storage->data();
  result.owner_ = storage;
  return result;
}

Tensor Tensor::adopt(std::shared_ptr<float> memory, std::vector<std::int64_t> shape, Purpose purpose) {
  constexpr std::uintptr_t kLine = 64;  // the alignment of Bytes (base/buffer.h), on which kernels rely
  if (memory == nullptr) fail("tensor", "adopt: expected memory, got none");
  if (reinterpret_cast<std::uintptr_t>(memory.get()) % kLine != 0) {
    fail("tensor", "adopt: expected memory that begins on a {}-byte line, got one {} bytes behind it (copy it instead)",
         kLine, reinterpret_cast<std::uintptr_t>(memory.get()) % kLine);
  }
  Tensor result;
  result.size_ = checked_count(shape);
  result.shape_ = std::move(shape);
  result.purpose_ = purpose;
  result.data_ = memory.get();
  result.owner_ = std::move(memory);
  return result;
}

Tensor Tensor::zeros(std::vector<std::int64_t> shape, Purpose purpose, Device device) {
  Tensor result = empty(std::move(shape), purpose, device);
  result.zero();
  return result;
}

Tensor Tensor::from(const std::vector<float>& values, std::vector<std::int64_t> shape, Purpose purpose, Device device) {
  Tensor result = empty(std::move(shape), purpose, device);
  if (static_cast<std::int64_t>(values.size()) != result.size()) {
    fail("tensor", "expected {} values for shape {}, got {}", result.size(), result.shape_text(), values.size());
  }
  copy_bytes(device, result.data_, Device::cpu, values.data(), result.bytes());
  return result;
}

std::int64_t Tensor::rows() const {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis + 1 < shape_.size(); ++axis) count *= shape_[axis];
  return count;
}

void Tensor::zero() const {
  if (owner_ != nullptr && !counting()) zero_bytes(device_, data_, bytes());
}

Tensor Tensor::clone(Purpose purpose) const {
  if (owner_ == nullptr) return {};
  Tensor copy = empty(shape_, purpose, device_, type_);
  copy_bytes(device_, copy.data_, device_, data_, bytes());
  return copy;
}

Tensor Tensor::to(Device device) const {
  if (owner_ == nullptr || device == device_) return *this;
  Tensor copy = empty(shape_, purpose_, device, type_);
  copy_bytes(device, copy.data_, device_, data_, bytes());
  return copy;
}

Tensor Tensor::reshaped(std::vector<std::int64_t> shape) const {
  if (checked_count(shape) != size_) {
    fail("tensor", "reshape: expected a shape of {} elements for {}, got {}", size_, shape_text(),
         etc::shape_text(shape));
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

void Tensor::fail_type(ElementType expected) const {
  fail("tensor", "{}: expected numbers in {}, they are in {}", shape_text(), element_type_name(expected),
       element_type_name(type_));
}

std::string Tensor::shape_text() const {
  return etc::shape_text(shape_);
}

}  // namespace etc

// A dense block of numbers with a shape, used throughout autograd, nn and optim. The numbers are fp32. When computing
// in bf16, tensors that only products and attention read are bf16 (keeps_bf16() in base/backend.h).
//
// Invariant: always contiguous, the last dimension fastest (token-major: [T, H]). A Tensor is a handle: copies share
// the memory, and constness belongs to the handle, not to the numbers (as with std::shared_ptr). There are no strided
// views; operators take pointer and row stride, so a range of columns is `columns(first)` plus the row stride cols().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/base/bf16.h"
#include "etc_core/base/buffer.h"
#include "etc_core/base/device.h"
#include "etc_core/base/element_type.h"

namespace etc {

class Tensor {
 public:
  Tensor() = default;  // no tensor; tests as false

  // Uninitialised memory for the product of `shape` numbers, charged to `purpose` until the last handle is gone.
  // Sizes may be 0 (no global tokens); a negative one is an Error.
  static Tensor empty(std::vector<std::int64_t> shape, Purpose purpose, Device device = Device::cpu,
                      ElementType type = ElementType::fp32);
  static Tensor zeros(std::vector<std::int64_t> shape, Purpose purpose, Device device = Device::cpu);
  // A copy of `values`, whose number must match the shape.
  static Tensor from(const std::vector<float>& values, std::vector<std::int64_t> shape, Purpose purpose,
                     Device device = Device::cpu);
  // Uses the host's numbers at `memory` without a copy: memory allocated elsewhere, such as a mapped file. The shared
  // pointer keeps it alive until the last handle is gone; it is not charged to the ledger. It must be aligned to 64
  // bytes (else Error), match the shape and be readable to the end of its last 64-byte line. Read-only memory must not
  // be written: no update of weights, no result of an operator.
  static Tensor adopt(std::shared_ptr<float> memory, std::vector<std::int64_t> shape, Purpose purpose);

  explicit operator bool() const { return owner_ != nullptr; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t dim(std::int64_t axis) const { return shape_[static_cast<std::size_t>(axis)]; }
  std::int64_t size() const { return size_; }
  // The tensor as a matrix [rows, cols]: cols is the last dimension, rows the product of the others (1 for rank 1).
  std::int64_t cols() const { return shape_.empty() ? 1 : shape_.back(); }
  std::int64_t rows() const;
  Device device() const { return device_; }
  Purpose purpose() const { return purpose_; }
  ElementType type() const { return type_; }

  // The host may read and write only when device() is cpu. Each throws Error when the numbers are of the other type.
  float* data() const {
    if (type_ != ElementType::fp32) fail_type(ElementType::fp32);
    return static_cast<float*>(data_);
  }
  Bf16* bf16() const {
    if (type_ != ElementType::bf16) fail_type(ElementType::bf16);
    return static_cast<Bf16*>(data_);
  }
  float* columns(std::int64_t first) const { return data() + first; }

  void zero() const;
  Tensor clone() const { return clone(purpose_); }  // own memory, equal numbers
  Tensor clone(Purpose purpose) const;
  Tensor to(Device device) const;  // this handle if the numbers are already on the device, else a copy there
  // The same memory under another shape of equal size, such as [T, N*D] as [T, N, D].
  Tensor reshaped(std::vector<std::int64_t> shape) const;
  bool is_only_handle() const { return owner_.use_count() == 1; }  // no other handle on this memory
  bool shares_memory_with(const Tensor& other) const {
    return owner_ != nullptr && data_ == other.data_ && owner_ == other.owner_;
  }

  std::string shape_text() const;  // "[4096, 768]" for messages

 private:
  std::int64_t bytes() const { return size_ * element_bytes(type_); }
  [[noreturn]] void fail_type(ElementType expected) const;

  std::shared_ptr<void> owner_;  // of the memory: a Buffer, or the pointer given to adopt()
  void* data_ = nullptr;
  std::vector<std::int64_t> shape_;
  std::int64_t size_ = 0;
  Device device_ = Device::cpu;
  Purpose purpose_ = Purpose::scratch;
  ElementType type_ = ElementType::fp32;
};

}  // namespace etc

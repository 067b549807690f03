#include "etc_core/autograd/tape.h"

#include <algorithm>
#include <atomic>

#include "etc_core/base/error.h"
#include "etc_core/base/finite.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"
#include "etc_core/ops/elementwise.h"

namespace etc {

Tensor& Gradient::storage() {
  if (!tensor_) tensor_ = Tensor::empty(shape_, Purpose::activations, device_, type_);
  return tensor_;
}

void Gradient::add(const Tensor& x) {
  if (x.shape() != shape_) {
    fail("autograd", "gradient: expected shape {}, got {}", shape_text(shape_), x.shape_text());
  }
  if (x.type() == ElementType::fp32 && type_ == ElementType::bf16) {
    const Tensor rounded = Tensor::empty(shape_, x.purpose(), device_, type_);
    ops::round_to_bf16(device_, x.data(), rounded.bf16(), x.size());
    add(rounded);
  } else if (!tensor_) {
    tensor_ = x;
  } else if (type_ == ElementType::bf16) {
    ops::add(x.device(), tensor_.bf16(), x.bf16(), tensor_.bf16(), x.size());
  } else {
    ops::add(x.device(), tensor_.data(), x.data(), tensor_.data(), x.size());
  }
}

Tensor Gradient::take() {
  Tensor taken = std::move(tensor_);
  tensor_ = Tensor();
  return taken;
}

Var::Var(Tensor value, bool needs_grad, ElementType gradient) : node_(std::make_shared<Node>()) {
  node_->gradient = std::make_shared<Gradient>(value, needs_grad, gradient);
  node_->value = std::move(value);
}

Tensor& Var::grad() {
  Gradient& gradient = *node_->gradient;
  if (!gradient.defined()) gradient.storage().zero();
  return gradient.tensor();
}

Tensor TensorPool::empty(std::vector<std::int64_t> shape, Purpose purpose, Device device, ElementType type) {
  const std::int64_t size = element_count(shape);
  for (const Tensor& tensor : held_) {
    if (tensor.is_only_handle() && tensor.size() == size && tensor.purpose() == purpose && tensor.device() == device &&
        tensor.type() == type) {
      return tensor.reshaped(std::move(shape));
    }
  }
  return held_.emplace_back(Tensor::empty(std::move(shape), purpose, device, type));
}

Tensor Tape::empty(std::vector<std::int64_t> shape, Purpose purpose, Device device, ElementType type) const {
  return pool_ != nullptr ? pool_->empty(std::move(shape), purpose, device, type)
                          : Tensor::empty(std::move(shape), purpose, device, type);
}

void Tape::record(std::function<void()> backward) {
  if (!recording()) fail("autograd", "record: this tape does not record");
  if (walked_) fail("autograd", "record: backward() of this tape has run (use a tape per forward pass)");
  closures_.push_back(std::move(backward));
}

void Tape::backward() {
  if (!recording()) fail("autograd", "backward: this tape does not record");
  if (walked_) fail("autograd", "backward: called twice on one tape (what operators saved is gone)");
  walked_ = true;
  announce_down_to(closures_.size());
  while (!closures_.empty()) {
    {
      const std::function<void()> closure = std::move(closures_.back());
      closures_.pop_back();
      closure();
    }
    announce_down_to(closures_.size());
  }
}

void Tape::uses(Parameter* parameter) {
  if (parameter == nullptr) return;
  if (outer_ != nullptr) {
    outer_->uses(parameter);
  } else if (announce_ && used_.insert(parameter).second) {
    first_uses_.emplace_back(closures_.size(), parameter);
  }
}

// Announces the parameters whose first closure is number `closures` or a later one.
void Tape::announce_down_to(std::size_t closures) {
  while (!first_uses_.empty() && first_uses_.back().first >= closures) {
    Parameter& parameter = *first_uses_.back().second;
    first_uses_.pop_back();
    announce_(parameter);
  }
}

namespace {

template <typename Number>
std::int64_t count_bad(const Number* numbers, std::int64_t size) {
  constexpr std::int64_t kBlock = 1 << 18;
  std::atomic<std::int64_t> bad{0};
  parallel_for(ceil_div(size, kBlock), [&](std::int64_t block) {
    const std::int64_t first = block * kBlock;
    bad += count_not_finite(numbers + first, std::min(kBlock, size - first));
  });
  return bad;
}

template <typename Number>
std::int64_t first_bad(const Number* numbers, std::int64_t size) {
  return std::find_if(numbers, numbers + size, [](Number number) { return !is_finite(number); }) - numbers;
}

}  // namespace

void check_finite(const std::string& operator_name, const char* what, const Tensor& result) {
  const Tensor tensor = result.to(Device::cpu);
  const bool bf16 = tensor.type() == ElementType::bf16;
  const std::int64_t size = tensor.size();
  const std::int64_t bad = bf16 ? count_bad(tensor.bf16(), size) : count_bad(tensor.data(), size);
  if (bad == 0) return;
  const std::int64_t first = bf16 ? first_bad(tensor.bf16(), size) : first_bad(tensor.data(), size);
  fail("autograd", "first bad operator: {}: {} {} has {} nan or inf (first at row {}, column {})", operator_name, what,
       tensor.shape_text(), bad, first / std::max<std::int64_t>(1, tensor.cols()),
       first % std::max<std::int64_t>(1, tensor.cols()));
}

}  // namespace etc

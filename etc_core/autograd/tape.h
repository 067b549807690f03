// Reverse-mode differentiation: a tape of closures over variables.
//
// An operator computes its value at once and, when the tape records and an input needs a gradient, pushes one closure
// that adds to its inputs' gradients. backward() runs the closures in reverse order and destroys each right after it
// ran, so what an operator saved is freed during the backward pass. Gradients are summed in the fixed order of the
// closures, hence equal bits. The operators themselves are in autograd/functions.h.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc {

struct Parameter;

// The gradient of a variable. Closures hold this and not the variable, so that a value no gradient depends on is freed
// in the forward pass already.
class Gradient {
 public:
  Gradient(const Tensor& value, bool needed, ElementType type)
      : shape_(value.shape()), device_(value.device()), type_(type), needed_(needed) {}

  ElementType type() const { return type_; }
  bool needed() const { return needed_; }
  bool defined() const { return static_cast<bool>(tensor_); }
  Tensor& tensor() { return tensor_; }

  // Memory for the gradient. If there was none it is uninitialised and the caller must write, otherwise add:
  //   const bool add = g.defined();  kernel(…, g.storage().data(), add);
  Tensor& storage();
  // Adds x, or, when there is no gradient yet, keeps x itself without a copy; nothing else may change that memory. x in
  // fp32 is rounded first if the gradient is bf16.
  void add(const Tensor& x);
  // Moves the gradient out, so that a closure may reuse its memory; there is none afterwards.
  Tensor take();

 private:
  std::vector<std::int64_t> shape_;
  Device device_;
  ElementType type_;
  Tensor tensor_;
  bool needed_;
};

// A tensor with an optional gradient. Cheap handle: copies refer to the same variable.
class Var {
 public:
  Var() = default;
  explicit Var(Tensor value, bool needs_grad = false) : Var(value, needs_grad, value.type()) {}
  // gradient: its type, bf16 where only products read it
  Var(Tensor value, bool needs_grad, ElementType gradient);

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const { return node_->value; }
  Tensor& value() { return node_->value; }
  // The value rounded to bf16 for products, if the operator or the first reader has made it; else undefined. Lives as
  // long as the variable.
  Tensor& rounded() const { return node_->rounded; }
  bool needs_grad() const { return node_ != nullptr && node_->gradient->needed(); }
  bool has_grad() const { return node_ != nullptr && node_->gradient->defined(); }

  // The gradient, allocated (zeroed) at the first call. A variable made by an operator passes its gradient on during
  // backward() and has none afterwards; a variable made by the caller (a leaf) keeps it.
  Tensor& grad();
  void drop_grad() { node_->gradient->take(); }
  const std::shared_ptr<Gradient>& gradient() const { return node_->gradient; }

 private:
  struct Node {
    Tensor value, rounded;
    std::shared_ptr<Gradient> gradient;
  };
  std::shared_ptr<Node> node_;
};

// Reuses the memory of results that are no longer referenced: inference needs the same few sizes in every layer, and
// new pages from the system cost about 5 % of a forward pass.
class TensorPool {
 public:
  Tensor empty(std::vector<std::int64_t> shape, Purpose purpose, Device device, ElementType type);

 private:
  std::vector<Tensor> held_;
};

// off: a tape for inference, which saves nothing.
enum class Recording : bool { off, on };
// on: every result and every gradient is checked for nan and inf (slow); for the replay of a step whose loss was not
// finite.
enum class FiniteChecks : bool { off, on };

class Tape {
 public:
  explicit Tape(Recording recording, FiniteChecks checks = FiniteChecks::off)
      : recording_(recording), checks_(checks) {}

  bool recording() const { return recording_ == Recording::on; }
  bool checked() const { return checks_ == FiniteChecks::on; }
  FiniteChecks checks() const { return checks_; }
  // Memory for an operator's result, from the pool if there is one. A pool is only for tapes that do not record,
  // because the backward pass should free memory as it proceeds.
  Tensor empty(std::vector<std::int64_t> shape, Purpose purpose, Device device,
               ElementType type = ElementType::fp32) const;
  void use_pool(TensorPool* pool) { pool_ = pool; }  // null: none

  // Throws Error on a tape that does not record or whose backward() has run.
  void record(std::function<void()> backward);

  // backward() calls this function once for each parameter declared by uses(), as soon as none of the closures that use
  // it is left, so that its gradient is final. Must be set before the forward pass.
  using Announce = std::function<void(Parameter&)>;
  void announce_final(Announce announce) { announce_ = std::move(announce); }
  // Called by functions: the closure they record next, if any, adds to the parameter's gradient; null is ignored.
  void uses(Parameter* parameter);
  // Uses declared on this tape count as uses by the closure that the other tape records next.
  void pass_uses_to(Tape& other) { outer_ = &other; }

  // Runs all closures in reverse order, freeing each. The caller must have set the gradient of the loss variable
  // before. Throws Error when called twice or on a tape that does not record.
  void backward();

 private:
  void announce_down_to(std::size_t closures);

  Recording recording_;
  FiniteChecks checks_;
  bool walked_ = false;
  TensorPool* pool_ = nullptr;
  std::vector<std::function<void()>> closures_;
  Announce announce_;
  Tape* outer_ = nullptr;
  std::set<const Parameter*> used_;
  std::vector<std::pair<std::size_t, Parameter*>> first_uses_;  // number of the closure, rising
};

// If the tensor has any, throws Error "autograd: first bad operator: <operator>: <what> [shape] has n nan or inf (first
// at …)".
void check_finite(const std::string& operator_name, const char* what, const Tensor& tensor);

}  // namespace etc

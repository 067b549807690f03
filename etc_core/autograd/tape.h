// Reverse-mode differentiation: a tape of closures over variables.
//
// An operator computes its value at once and, when the tape records and an input needs a gradient, pushes one closure
// that adds to its inputs' gradients. backward() runs the closures in reverse order and destroys each right after it
// ran, so what an operator saved is freed as the walk goes. Gradients are summed in the order of the closures: one
// order, hence equal bits. The operators themselves are in autograd/functions.h.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc {

// A tensor with, perhaps, a gradient. Cheap handle: copies name the same variable.
class Var {
 public:
  Var() = default;
  explicit Var(Tensor value, bool needs_grad = false);

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const { return node_->value; }
  Tensor& value() { return node_->value; }
  bool needs_grad() const { return node_ != nullptr && node_->needs_grad; }
  bool has_grad() const { return node_ != nullptr && node_->grad.defined(); }

  // The gradient, made (zeroed) at the first call.
  Tensor& grad();
  void drop_grad() { node_->grad = Tensor(); }

 private:
  struct Node {
    Tensor value;
    Tensor grad;
    bool needs_grad = false;
  };
  std::shared_ptr<Node> node_;
};

class Tape {
 public:
  // A tape that does not record serves inference: values only, nothing saved.
  explicit Tape(bool recording) : recording_(recording) {}

  bool recording() const { return recording_; }
  void record(std::function<void()> backward);

  // Runs all closures, last first, freeing each. The caller has put the loss's gradient into its variable before.
  // Throws Error when called twice or on a tape that does not record.
  void backward();

 private:
  bool recording_;
  bool walked_ = false;
  std::vector<std::function<void()>> closures_;
};

}  // namespace etc

#include "etc_core/optim/accumulator.h"

#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/ops/elementwise.h"

namespace etc {

void put_gradients(ParameterSet& parameters, GradientSet gradients) {
  if (gradients.size() != parameters.all().size()) {
    fail("gradients", "expected the gradients of {} parameters, got {}", parameters.all().size(), gradients.size());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) parameters.all()[i]->grad = std::move(gradients[i]);
}

Tensor GradientAccumulator::Add::operator()(Tensor left, Tensor right) const {
  if (!right) return left;
  if (!left) return right;
  if (left.size() != right.size()) {
    fail("gradients", "parameter {} must keep its size: {}, then {}", parameter, left.shape_text(), right.shape_text());
  }
  ops::add(left.device(), left.data(), right.data(), left.data(), left.size());
  return left;
}

void GradientAccumulator::add(std::int64_t leaf, GradientSet gradients) {
  const std::size_t count = gradients.size();
  for (std::size_t i = 0; i < count; ++i) add(leaf, i, count, std::move(gradients[i]));
}

void GradientAccumulator::add(std::int64_t leaf, std::size_t parameter, std::size_t parameters, Tensor gradient) {
  if (trees_.empty()) {
    for (std::size_t i = 0; i < parameters; ++i) trees_.emplace_back(Add{i});
  }
  if (trees_.size() != parameters) {
    fail("gradients", "expected the gradients of {} parameters, got {}", trees_.size(), parameters);
  }
  trees_[parameter].push({0, leaf}, std::move(gradient));
}

GradientSet GradientAccumulator::finish() {
  GradientSet total;
  for (Tree& tree : trees_) total.push_back(tree.finish().value_or(Tensor()));
  trees_.clear();
  return total;
}

}  // namespace etc

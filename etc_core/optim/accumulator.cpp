#include "etc_core/optim/accumulator.h"

#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/ops/elementwise.h"

namespace etc {

GradientSet take_gradients(ParameterSet& parameters) {
  GradientSet gradients;
  for (const auto& parameter : parameters.all()) gradients.push_back(std::exchange(parameter->grad, Tensor()));
  return gradients;
}

void put_gradients(ParameterSet& parameters, GradientSet gradients) {
  if (gradients.size() != parameters.all().size()) {
    fail("gradients", "expected the gradients of {} parameters, got {}", parameters.all().size(), gradients.size());
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) parameters.all()[i]->grad = std::move(gradients[i]);
}

GradientSet GradientAccumulator::AddSets::operator()(GradientSet left, GradientSet right) const {
  if (left.size() != right.size()) {
    fail("gradients", "expected the gradients of {} parameters, got {}", left.size(), right.size());
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!right[i]) continue;
    if (!left[i]) {
      left[i] = std::move(right[i]);
      continue;
    }
    if (left[i].size() != right[i].size()) {
      fail("gradients", "parameter {} must keep its size: {}, then {}", i, left[i].shape_text(), right[i].shape_text());
    }
    ops::add(left[i].device(), left[i].data(), right[i].data(), left[i].data(), left[i].size());
  }
  return left;
}

}  // namespace etc

// ADMIN's factors among the parameters of an encoder-decoder.
#pragma once

#include <vector>

#include "etc_core/nn/parameters.h"

namespace etc::test {

// The factors on the skips, in order of execution: encoder first, in each layer self_attention, cross_attention,
// feed_forward. Empty if the model has none.
inline std::vector<Parameter*> admin_omegas(const ParameterSet& parameters) {
  std::vector<Parameter*> omegas;  // parameters are declared in order of execution
  for (const auto& parameter : parameters.all()) {
    if (parameter->name.ends_with("/admin_omega")) omegas.push_back(parameter.get());
  }
  return omegas;
}

}  // namespace etc::test

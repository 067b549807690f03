// The trainable variables of a model, in a fixed order, under their checkpoint names (etc-core 12).
//
// A shared weight is one parameter, stored once under the name of its first use. The names matter: weight decay and
// LAMB exclude by substring (optim/optimizer.h lists them).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/autograd/parameter.h"

namespace etc {

class ParameterSet {
 public:
  // Throws Error if the name is already used. The value has no memory until initialize() or a load allocates it.
  Parameter& add(std::string name, std::vector<std::int64_t> shape, Initializer initializer);

  Parameter* find(std::string_view name);
  Parameter& at(std::string_view name);  // throws Error with a suggestion
  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }
  std::int64_t count() const;  // total number of elements of all parameters

  // Draws every value from (seed, name, element), independently of the order and of other parameters.
  void initialize(std::uint64_t seed);
  void drop_gradients();

  // Moves every value to the device, where the model then computes; gradients are dropped.
  void to(Device device);

 private:
  std::vector<std::unique_ptr<Parameter>> parameters_;  // addresses stay valid
  std::map<std::string, Parameter*, std::less<>> by_name_;
};

// Draws one parameter's value from (seed, name, element); what initialize() does for all.
void initialize_parameter(Parameter& parameter, std::uint64_t seed);

}  // namespace etc

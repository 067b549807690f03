// The trainable variables of a model, in a fixed order, under their checkpoint names (etc-core 12).
//
// A shared weight is one parameter, stored once under the name of its first use. The names matter: weight decay and
// LAMB exclude by substring ("LayerNorm", "layer_norm", "bias").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/tensor/tensor.h"

namespace etc {

// How a parameter starts (etc-core 3, task-wikihop 4).
struct Initializer {
  enum class Kind { zeros, ones, truncated_normal, glorot_uniform } kind = Kind::zeros;
  float stddev = 0;  // truncated_normal: samples beyond two standard deviations are redrawn
};

struct Parameter {
  std::string name;
  Initializer initializer;
  Tensor value;
  Tensor grad;                // undefined until the first gradient; parameters without gradient are not updated
  std::uint64_t version = 0;  // raised by whoever changes value: packed copies compare it

  // The gradient, made (zeroed, Purpose::gradients) at the first call.
  Tensor& gradient();
};

class ParameterSet {
 public:
  // Throws Error on a name used twice. The value is not initialised yet.
  Parameter& add(std::string name, std::vector<std::int64_t> shape, Initializer initializer);

  Parameter* find(std::string_view name);
  Parameter& at(std::string_view name);  // throws Error with a suggestion
  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }
  std::int64_t count() const;  // numbers in all parameters together

  // Draws every value from (seed, name, element): independent of the order and of other parameters.
  void initialize(std::uint64_t seed);
  void drop_gradients();

 private:
  std::vector<std::unique_ptr<Parameter>> parameters_;  // addresses stay valid
  std::map<std::string, Parameter*, std::less<>> by_name_;
};

}  // namespace etc

#include "etc_core/nn/seq2seq/admin_fold.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/error.h"

namespace etc {

namespace {

constexpr const char* kAdminFold = "admin";
constexpr std::string_view kOmega = "/admin_omega";

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
}

// How a parameter's values [rows, width] change: the norm before a sub-layer is multiplied; rows of the kernels that
// read its x are divided.
enum class Fold { multiply, divide_rows };

void fold(Parameter& parameter, const Parameter& omega, Fold how) {
  const Tensor factors = omega.value.to(Device::cpu);
  const std::int64_t count = factors.size(), width = parameter.size() / count;
  float* const values = parameter.value.data();
  for (std::int64_t i = 0; i < parameter.size(); ++i) {
    const double factor = static_cast<double>(factors.data()[i / width]);
    if (!(std::abs(factor) > 0))
      fail(kAdminFold, "{}: expected numbers other than 0 to fold, got {}", omega.name, factor);
    values[i] = static_cast<float>(how == Fold::multiply ? values[i] * factor : values[i] / factor);
  }
}

// "…/layer_3/cross_attention/"
std::string sublayer_of(const Parameter& omega) {
  return omega.name.substr(0, omega.name.size() - kOmega.size() + 1);
}

}  // namespace

void fold_admin(const ParameterSet& from, ParameterSet& to) {
  std::vector<const Parameter*> omegas;
  std::size_t filled = 0;
  for (const auto& parameter : from.all()) {
    const bool omega = parameter->name.ends_with(kOmega);
    if (omega) omegas.push_back(parameter.get());
    Parameter* const own = to.find(parameter->name);
    if (own == nullptr && omega) continue;
    if (own == nullptr || own->shape != parameter->shape) {
      fail(kAdminFold, "{}: expected one of the same shape in the model to fold into", parameter->name);
    }
    own->value = parameter->value.to(Device::cpu).clone(Purpose::weights);
    ++own->version;
    ++filled;
  }
  if (filled != to.all().size()) {
    fail(kAdminFold,
         "the model to fold into has {} parameters: expected the {} that the other has, without its numbers",
         to.all().size(), filled);
  }
  if (omegas.empty()) fail(kAdminFold, "nothing to fold: expected a model of norm admin");
  std::string before;  // the sub-layer below in the same stack
  for (const Parameter* omega : omegas) {
    const std::string own = sublayer_of(*omega);
    if (to.find(omega->name) == nullptr) {
      for (const char* name : {"LayerNorm/gamma", "LayerNorm/beta"}) fold(to.at(before + name), *omega, Fold::multiply);
      const bool across = own.ends_with("/cross_attention/");
      for (const auto& parameter : to.all()) {
        const std::string& name = parameter->name;
        if (!name.starts_with(own) ||
            !ends_with_any(name, {"query/kernel", "key/kernel", "value/kernel", "inner/kernel"}))
          continue;
        if (!across || name.ends_with("query/kernel")) fold(*parameter, *omega, Fold::divide_rows);
      }
    }
    before = own;
  }
}

}  // namespace etc

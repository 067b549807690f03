#include "etc_core/nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/random.h"
#include "etc_core/base/words.h"

namespace etc {

namespace {

constexpr std::int64_t kElementsPerTask = 1 << 16;

std::uint64_t name_hash(std::string_view name) {  // FNV-1a: the same on every machine, unlike std::hash
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

template <std::size_t n>
double polynomial(const double (&coefficients)[n], double x) {  // lowest power first
  double sum = 0;
  for (std::size_t i = n; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// Quantile of the standard normal distribution for 2^-33 <= p <= 1 - 2^-33 (Wichura, "Algorithm AS 241: The Percentage
// Points of the Normal Distribution", Applied Statistics 37, 1988; the branch for more extreme p is not needed).
double normal_quantile(double p) {
  static constexpr double kA[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                  1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                  3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double kB[] = {1.0,
                                  4.2313330701600911252e1,
                                  6.8718700749205790830e2,
                                  5.3941960214247511077e3,
                                  2.1213794301586595867e4,
                                  3.9307895800092710610e4,
                                  2.8729085735721942674e4,
                                  5.2264952788528545610e3};
  static constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double x = polynomial(kC, r) / polynomial(kD, r);
  return q < 0 ? -x : x;
}

// Redrawing values beyond two standard deviations gives a truncated normal distribution; its quantile function gives
// the same distribution from exactly one random number per element.
float truncated_normal(double u, float stddev) {
  constexpr double kBelow = 0.022750131948179207200;  // P(x < -2)
  return static_cast<float>(stddev * normal_quantile(kBelow + u * (1 - 2 * kBelow)));
}

}  // namespace

Parameter& ParameterSet::add(std::string name, std::vector<std::int64_t> shape, Initializer initializer) {
  if (by_name_.count(name) != 0) fail("parameters", "{} is added twice", name);
  auto parameter = std::make_unique<Parameter>();
  parameter->name = name;
  parameter->shape = std::move(shape);
  parameter->initializer = initializer;
  by_name_.emplace(std::move(name), parameter.get());
  return *parameters_.emplace_back(std::move(parameter));
}

Parameter* ParameterSet::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Parameter& ParameterSet::at(std::string_view name) {
  Parameter* parameter = find(name);
  if (parameter == nullptr) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : by_name_) names.push_back(known);
    fail("parameters", "no parameter {}{}", name, suggestion(name, names));
  }
  return *parameter;
}

std::int64_t ParameterSet::count() const {
  std::int64_t sum = 0;
  for (const auto& parameter : parameters_) sum += parameter->size();
  return sum;
}

void ParameterSet::initialize(std::uint64_t seed) {
  for (const auto& parameter : parameters_) initialize_parameter(*parameter, seed);
}

void ParameterSet::drop_gradients() {
  for (const auto& parameter : parameters_) parameter->grad = Tensor();
}

void ParameterSet::to(Device device) {
  for (const auto& parameter : parameters_) {
    if (!parameter->value || parameter->value.device() == device) continue;
    parameter->value = parameter->value.to(device);
    parameter->grad = Tensor();
    ++parameter->version;
  }
}

void initialize_parameter(Parameter& parameter, std::uint64_t seed) {
  using Kind = Initializer::Kind;
  const Initializer initializer = parameter.initializer;
  float* values = parameter.allocate().data();
  const std::int64_t size = parameter.size();
  const std::uint64_t key = mix_key(seed, name_hash(parameter.name));
  double limit = 0;  // glorot_uniform: fan in and fan out are the two sizes of a matrix
  if (initializer.kind == Kind::glorot_uniform) {
    if (parameter.shape.size() != 2) fail("parameters", "{}: glorot_uniform needs a matrix", parameter.name);
    limit = std::sqrt(6.0 / static_cast<double>(parameter.shape[0] + parameter.shape[1]));
  }
  if (initializer.kind == Kind::uniform) limit = std::sqrt(3.0) * static_cast<double>(initializer.stddev);
  parallel_for(ceil_div(size, kElementsPerTask), [&](std::int64_t task) {
    const std::int64_t end = std::min(size, (task + 1) * kElementsPerTask);
    for (std::int64_t first = task * kElementsPerTask; first < end; first += 4) {  // four elements per Philox block
      const auto block = static_cast<std::uint64_t>(first / 4);
      const Philox4 bits =
          philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, key);
      for (std::int64_t i = first; i < std::min(end, first + 4); ++i) {
        const double u = (static_cast<double>(bits[static_cast<std::size_t>(i - first)]) + 0.5) * 0x1p-32;  // (0, 1)
        switch (initializer.kind) {
          case Kind::zeros:
            values[i] = 0;
            break;
          case Kind::ones:
            values[i] = 1;
            break;
          case Kind::normal:
            values[i] = static_cast<float>(initializer.stddev * normal_quantile(u));
            break;
          case Kind::truncated_normal:
            values[i] = truncated_normal(u, initializer.stddev);
            break;
          case Kind::glorot_uniform:
          case Kind::uniform:
            values[i] = static_cast<float>(limit * (2 * u - 1));
            break;
        }
      }
    }
  });
  if (initializer.zero_row < 0) return;
  const std::int64_t width = size / parameter.shape.front();
  std::fill_n(values + initializer.zero_row * width, width, 0.0f);
}

}  // namespace etc

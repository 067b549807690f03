#include "etc_core/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/parallel.h"
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"
#include "etc_core/optim/blocks.h"

namespace etc {

namespace {

// Constants of one step in the type the numbers have.
struct Constants {
  float beta_1, beta_2, one_minus_beta_1, one_minus_beta_2, epsilon;
  float gradient_scale;
};

// m and v of one block. Bound by memory, not arithmetic: plain loops that any x86-64 vectorises (see CMakeLists.txt)
// reach the bandwidth, and give the same bits on all of them.
void update_moments(const Constants& c, const float* __restrict g, std::int64_t n, float* __restrict m,
                    float* __restrict v) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * c.gradient_scale;
    m[i] = c.beta_1 * m[i] + c.one_minus_beta_1 * gradient;
    v[i] = c.beta_2 * v[i] + c.one_minus_beta_2 * (gradient * gradient);
  }
}

// The update before the learning rate. LAMB computes it twice, for ‖u‖ and for w, rather than keeping a copy of it.
inline float update_of(float m, float v, float w, float epsilon, float decay) {
  return m / (std::sqrt(v) + epsilon) + decay * w;
}

void update_weights(const float* __restrict m, const float* __restrict v, std::int64_t n, float epsilon, float decay,
                    float rate, float* __restrict w) {
  for (std::int64_t i = 0; i < n; ++i) w[i] -= rate * update_of(m[i], v[i], w[i], epsilon, decay);
}

// Norms of w and of its update.
struct Norms {
  double weights = 0, update = 0;  // sums of squares
};

Norms squares(const float* w, const float* m, const float* v, std::int64_t n, float epsilon, float decay) {
  constexpr std::int64_t kPart = 512;  // updates wait in the first-level cache to be summed
  float update[kPart];
  Norms sums;
  for (std::int64_t first = 0; first < n; first += kPart) {
    const std::int64_t count = std::min(kPart, n - first);
    for (std::int64_t i = 0; i < count; ++i) {
      update[i] = update_of(m[first + i], v[first + i], w[first + i], epsilon, decay);
    }
    sums.weights += sum_of_squares(w + first, count);
    sums.update += sum_of_squares(update, count);
  }
  return sums;
}

bool contains_any(std::string_view name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string_view::npos; });
}

std::vector<std::int64_t> gradient_sizes(std::span<const ParamRef> parameters) {
  std::vector<std::int64_t> sizes;
  for (const ParamRef& parameter : parameters) sizes.push_back(parameter.g != nullptr ? parameter.size : 0);
  return sizes;
}

void check_range(const char* name, double value, double low, double high) {
  if (value >= low && value < high) return;
  fail_usage("optimizer", "{}: expected {} <= {} < {}, got {}", name, low, name, high, value);
}

}  // namespace

std::vector<ParamRef> param_refs(const ParameterSet& parameters) {
  std::vector<ParamRef> refs;
  for (const auto& parameter : parameters.all()) {
    refs.push_back({parameter->name, parameter->value.data(), parameter->grad.data(), parameter->size(),
                    parameter->shape, &parameter->version});
  }
  return refs;
}

double global_norm(std::span<const ParamRef> parameters) {
  const std::vector<Block> blocks = blocks_of(gradient_sizes(parameters));
  std::vector<double> sums(blocks.size());
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t number) {
    const Block& block = blocks[static_cast<std::size_t>(number)];
    sums[static_cast<std::size_t>(number)] = sum_of_squares(parameters[block.array].g + block.first, block.count);
  });
  return std::sqrt(pairwise_sum(sums));
}

double clip_scale(double norm, double max_norm) {
  if (!std::isfinite(norm)) fail("optimizer", "the norm of the gradient is {}: expected a number", norm);
  return max_norm > 0 ? max_norm / std::max(norm, max_norm) : 1.0;
}

OptimizerKind optimizer_kind(const std::string& name) {
  if (name == "adamw") return OptimizerKind::adamw;
  if (name == "lamb") return OptimizerKind::lamb;
  fail_usage("optimizer", "expected adamw or lamb, got {}{}", name, suggestion(name, {"adamw", "lamb"}));
}

Optimizer::Optimizer(OptimizerOptions options) : options_(std::move(options)) {
  check_range("beta_1", options_.beta_1, 0, 1);
  check_range("beta_2", options_.beta_2, 0, 1);
  check_range("epsilon", options_.epsilon, 0, 1);
  check_range("weight_decay", options_.weight_decay, 0, 1e9);
}

bool Optimizer::decays(std::string_view name) const {
  return options_.weight_decay > 0 && !contains_any(name, options_.exclude_from_decay);
}

bool Optimizer::adapts(std::string_view name) const {
  const auto& own = options_.exclude_from_adaptation;
  return options_.kind == OptimizerKind::lamb && !contains_any(name, own.empty() ? options_.exclude_from_decay : own);
}

std::vector<double> Optimizer::step(std::span<const ParamRef> parameters, double learning_rate, double gradient_scale) {
  double elements = 0;
  for (const ParamRef& parameter : parameters) elements += static_cast<double>(parameter.size);
  const profiler::Scope profiled("optimizer", {0, 28.0 * elements});  // reads w, g, m, v; writes w, m, v
  // What each parameter needs, by its position in `parameters`.
  struct Plan {
    float *m = nullptr, *v = nullptr;
    float decay = 0;
    bool adapted = false;
  };
  std::vector<Plan> plans(parameters.size());
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParamRef& parameter = parameters[i];
    if (!names.insert(parameter.name).second) fail("optimizer", "{} is given twice", parameter.name);
    if (parameter.g == nullptr) continue;
    Moments& moments = moments_[parameter.name];
    if (!moments.m) {
      moments = {Tensor::zeros(parameter.shape, Purpose::moments), Tensor::zeros(parameter.shape, Purpose::moments)};
    }
    if (moments.m.size() != parameter.size) {
      fail("optimizer", "{} must match its moments: {} numbers, moments {}", parameter.name, parameter.size,
           moments.m.shape_text());
    }
    plans[i] = {moments.m.data(), moments.v.data(),
                decays(parameter.name) ? static_cast<float>(options_.weight_decay) : 0.0f, adapts(parameter.name)};
  }

  const Constants constants{static_cast<float>(options_.beta_1),     static_cast<float>(options_.beta_2),
                            static_cast<float>(1 - options_.beta_1), static_cast<float>(1 - options_.beta_2),
                            static_cast<float>(options_.epsilon),    static_cast<float>(gradient_scale)};
  const std::vector<Block> blocks = blocks_of(gradient_sizes(parameters));
  const auto block_count = static_cast<std::int64_t>(blocks.size());
  std::vector<Norms> norms(blocks.size());
  std::vector<double> ratios(parameters.size(), 1.0);

  // Writes the weights of one block; its moments are up to date.
  const auto write_weights = [&](const Block& block) {
    const Plan& plan = plans[block.array];
    update_weights(plan.m + block.first, plan.v + block.first, block.count, constants.epsilon, plan.decay,
                   static_cast<float>(ratios[block.array] * learning_rate), parameters[block.array].w + block.first);
  };

  // Pass 1: moments, and where no norm is waited for the weights while the block is in the cache; else its norms.
  parallel_for(block_count, [&](std::int64_t number) {
    const Block& block = blocks[static_cast<std::size_t>(number)];
    const Plan& plan = plans[block.array];
    float *m = plan.m + block.first, *v = plan.v + block.first;
    update_moments(constants, parameters[block.array].g + block.first, block.count, m, v);
    if (!plan.adapted) return write_weights(block);
    norms[static_cast<std::size_t>(number)] =
        squares(parameters[block.array].w + block.first, m, v, block.count, constants.epsilon, plan.decay);
  });

  // Pass 2: one ratio per adapted parameter, its blocks' sums combined in a fixed order.
  for (std::size_t begin = 0, end; begin < blocks.size(); begin = end) {
    std::vector<double> weights, update;
    for (end = begin; end < blocks.size() && blocks[end].array == blocks[begin].array; ++end) {
      weights.push_back(norms[end].weights);
      update.push_back(norms[end].update);
    }
    if (!plans[blocks[begin].array].adapted) continue;
    const double w = std::sqrt(pairwise_sum(weights)), u = std::sqrt(pairwise_sum(update));
    if (w > 0 && u > 0) ratios[blocks[begin].array] = w / u;
  }

  // Pass 3: the weights that waited for their ratio.
  if (options_.kind == OptimizerKind::lamb) {
    parallel_for(block_count, [&](std::int64_t number) {
      const Block& block = blocks[static_cast<std::size_t>(number)];
      if (plans[block.array].adapted) write_weights(block);
    });
  }

  for (const ParamRef& parameter : parameters) {
    if (parameter.g != nullptr && parameter.version != nullptr) ++*parameter.version;
  }
  return ratios;
}

std::map<std::string, Tensor> Optimizer::moments() const {
  std::map<std::string, Tensor> all;
  for (const auto& [name, moments] : moments_) {
    all[name + "/adam_m"] = moments.m;
    all[name + "/adam_v"] = moments.v;
  }
  return all;
}

void Optimizer::set_moments(const std::map<std::string, Tensor>& moments, std::span<const ParamRef> parameters) {
  std::map<std::string, Moments, std::less<>> taken;
  std::size_t used = 0;
  for (const ParamRef& parameter : parameters) {
    const auto m = moments.find(parameter.name + "/adam_m"), v = moments.find(parameter.name + "/adam_v");
    if (m == moments.end() && v == moments.end()) continue;  // never had a gradient
    if (m == moments.end() || v == moments.end()) {
      fail("optimizer", "{}: expected adam_m and adam_v, got only one of them", parameter.name);
    }
    for (const auto& found : {m, v}) {
      if (found->second.shape() == parameter.shape) continue;
      fail("optimizer", "{} must have its parameter's shape: expected {}, got {}", found->first,
           shape_text(parameter.shape), found->second.shape_text());
    }
    taken[parameter.name] = {m->second, v->second};
    used += 2;
  }
  if (used != moments.size()) {
    for (const auto& [name, tensor] : moments) {
      const std::size_t cut = name.rfind('/');
      if (taken.count(std::string_view(name).substr(0, cut)) == 0) {
        fail("optimizer", "{} {} belongs to no parameter", name, tensor.shape_text());
      }
    }
  }
  moments_ = std::move(taken);
}

}  // namespace etc

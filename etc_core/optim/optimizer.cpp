#include "etc_core/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "etc_core/base/device_memory.h"
#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/json.h"  // suggestion
#include "etc_core/base/profiler.h"
#include "etc_core/base/shape.h"
#include "etc_core/base/sums.h"
#include "etc_core/base/words.h"
#include "etc_core/comm/gather_values.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/update.h"

namespace etc {

namespace {

bool contains_any(std::string_view name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string_view::npos; });
}

Device device_of(std::span<const ParamRef> parameters) {
  return parameters.empty() ? Device::cpu : parameters.front().device;
}

// The part of the parameter that this process works on.
NumberRange part_of(const ParamRef& parameter, std::size_t index, const Division* division) {
  if (division == nullptr) return {index, 0, parameter.size};
  return division->shards.part(division->processes.rank(), index);
}

// Adds the blocks of this part of the parameter; none without a gradient. `whole` holds the values common to all
// blocks; its moments start at the part.
void add_blocks(const ParamRef& parameter, const NumberRange& part, ops::UpdateBlock whole,
                std::vector<ops::UpdateBlock>& blocks) {
  if (parameter.g == nullptr) return;
  const auto from = [](auto* array, std::int64_t first) { return array == nullptr ? nullptr : array + first; };
  for (std::int64_t done = 0; done < part.count; done += ops::kBlockSize) {
    ops::UpdateBlock block = whole;
    block.g = parameter.g + part.first + done;
    block.w = from(parameter.w, part.first + done);
    block.m = from(whole.m, done);
    block.v = from(whole.v, done);
    block.count = std::min(ops::kBlockSize, part.count - done);
    blocks.push_back(block);
  }
}

std::size_t blocks_in(std::int64_t numbers) {
  return static_cast<std::size_t>(ceil_div(numbers, ops::kBlockSize));
}

// Gathers the values of all processes' blocks, in the order of the blocks.
template <typename Value>
std::vector<Value> of_all_blocks(std::span<const ParamRef> parameters, std::vector<Value> own,
                                 const Division* division) {
  if (division == nullptr) return own;
  const std::vector<Value> by_rank = gather_values<Value>(division->processes, own);
  std::vector<std::size_t> first_of{0};  // first block of each parameter; parameters without gradient have no blocks
  for (const ParamRef& parameter : parameters) {
    first_of.push_back(first_of.back() + (parameter.g != nullptr ? blocks_in(parameter.size) : 0));
  }
  std::vector<Value> all(by_rank.size());
  auto next = by_rank.begin();
  for (int rank = 0; rank < division->processes.size(); ++rank) {
    for (const NumberRange& part : division->shards.of(rank)) {
      if (parameters[part.parameter].g == nullptr) continue;
      const auto count = static_cast<std::ptrdiff_t>(blocks_in(part.count));
      const std::size_t place = first_of[part.parameter] + blocks_in(part.first);
      std::copy_n(next, count, all.begin() + static_cast<std::ptrdiff_t>(place));
      next += count;
    }
  }
  return all;
}

void check_range(const char* name, double value, double low, double high) {
  if (value >= low && value < high) return;
  fail_usage("optimizer", "{}: expected {} <= {} < {}, got {}", name, low, name, high, value);
}

// LAMB's ‖w‖/‖u‖ of one parameter; sums of its blocks are combined in a fixed order; 1 where either norm is 0.
double ratio_of(std::span<const ops::UpdateNorms> norms) {
  std::vector<double> weights, update;
  for (const ops::UpdateNorms& block : norms) {
    weights.push_back(block.weights);
    update.push_back(block.update);
  }
  const double w = std::sqrt(pairwise_sum(weights)), u = std::sqrt(pairwise_sum(update));
  return w > 0 && u > 0 ? w / u : 1.0;
}

}  // namespace

std::vector<ParamRef> param_refs(const ParameterSet& parameters) {
  std::vector<ParamRef> refs;
  for (const auto& parameter : parameters.all()) {
    refs.push_back({parameter->name, parameter->value.data(), parameter->grad.data(), parameter->size(),
                    parameter->shape, &parameter->version, parameter->value.device()});
  }
  return refs;
}

double global_norm(std::span<const ParamRef> parameters, const Division* division) {
  std::vector<ops::UpdateBlock> blocks;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    add_blocks(parameters[i], part_of(parameters[i], i, division), {}, blocks);
  }
  return std::sqrt(
      pairwise_sum(of_all_blocks(parameters, ops::gradient_squares(device_of(parameters), blocks), division)));
}

double clip_scale(double norm, double max_norm) {
  if (!std::isfinite(norm)) fail("optimizer", "the norm of the gradient is {}: expected a number", norm);
  return max_norm > 0 ? max_norm / std::max(norm, max_norm) : 1.0;
}

OptimizerKind optimizer_kind(const std::string& name) {
  if (name == "adamw") return OptimizerKind::adamw;
  if (name == "lamb") return OptimizerKind::lamb;
  if (name == "radam") return OptimizerKind::radam;
  fail_usage("optimizer", "expected adamw, lamb or radam, got {}{}", name,
             suggestion(name, {"adamw", "lamb", "radam"}));
}

double radam_factor(double beta_1, double beta_2, std::int64_t update) {
  constexpr double kRectified = 5;
  const double t = static_cast<double>(update), power = std::pow(beta_2, t), most = 2 / (1 - beta_2) - 1;
  const double rho = most - 2 * t * power / (1 - power);
  if (!(rho >= kRectified)) return 0;
  const double variance = (rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho);
  return std::sqrt((1 - power) * variance) / (1 - std::pow(beta_1, t));
}

Optimizer::Optimizer(OptimizerOptions options, const Division* division)
    : options_(std::move(options)), division_(division) {
  check_range("beta_1", options_.beta_1, 0, 1);
  check_range("beta_2", options_.beta_2, 0, 1);
  check_range("epsilon", options_.epsilon, kLeastEpsilon, 1);
  check_range("weight_decay", options_.weight_decay, 0, 1e9);
}

bool Optimizer::decays(std::string_view name) const {
  return options_.weight_decay > 0 && !contains_any(name, options_.exclude_from_decay);
}

bool Optimizer::adapts(std::string_view name) const {
  const auto& own = options_.exclude_from_adaptation;
  return options_.kind == OptimizerKind::lamb && !contains_any(name, own.empty() ? options_.exclude_from_decay : own);
}

Optimizer::Rates Optimizer::rates(double learning_rate) const {
  if (options_.kind != OptimizerKind::radam) return {learning_rate, options_.weight_decay};
  const double factor = radam_factor(options_.beta_1, options_.beta_2, updates_);
  if (factor == 0) return {0, 0, options_.weight_decay * learning_rate};
  return {learning_rate * factor, options_.weight_decay / factor};  // their product: λ·lr
}

// What one step updates.
struct Optimizer::Work {
  std::vector<ops::UpdateBlock> blocks;  // that this process updates
  std::vector<std::size_t> owner_of;     // the parameter each of them belongs to
  std::vector<std::size_t> first_of{0};  // where a parameter begins among the blocks of all processes; then the end
};

Optimizer::Work Optimizer::collect(std::span<const ParamRef> parameters, const Rates& rates) {
  Work work;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParamRef& parameter = parameters[i];
    if (!names.insert(parameter.name).second) fail("optimizer", "{} is given twice", parameter.name);
    std::size_t count = 0;
    if (parameter.g != nullptr) {
      const Moments& moments = moments_of(parameter, i);
      ops::UpdateBlock whole;
      whole.m = moments.m.data();
      whole.v = moments.v.data();
      whole.decay = decays(parameter.name) ? static_cast<float>(rates.decay) : 0.0f;
      whole.rate = static_cast<float>(rates.rate);
      whole.adapted = adapts(parameter.name);
      add_blocks(parameter, moments.part, whole, work.blocks);
      count = blocks_in(parameter.size);
    }
    work.owner_of.resize(work.blocks.size(), i);
    work.first_of.push_back(work.first_of.back() + count);
  }
  return work;
}

std::vector<double> Optimizer::step(std::span<const ParamRef> parameters, double learning_rate, double gradient_scale) {
  double elements = 0;
  for (const ParamRef& parameter : parameters) elements += static_cast<double>(parameter.size);
  const profiler::Scope profiled("optimizer", {0, 28.0 * elements});  // reads w, g, m, v; writes w, m, v
  ++updates_;
  const Rates rates = this->rates(learning_rate);
  const auto [blocks, owner_of, first_of] = collect(parameters, rates);
  const ops::UpdateConstants constants{static_cast<float>(options_.beta_1),     static_cast<float>(options_.beta_2),
                                       static_cast<float>(1 - options_.beta_1), static_cast<float>(1 - options_.beta_2),
                                       static_cast<float>(options_.epsilon),    static_cast<float>(gradient_scale)};
  const Device device = device_of(parameters);

  // Pass 1: moments, and the weights of parameters that need no norm; for the others the blocks' norms.
  const std::vector<ops::UpdateNorms> norms =
      of_all_blocks(parameters, ops::update_moments(device, constants, blocks), division_);

  for (std::size_t n = 0; n < blocks.size() && rates.alone > 0; ++n) {
    if (!decays(parameters[owner_of[n]].name)) continue;
    ops::scale(device, static_cast<float>(1 - rates.alone), blocks[n].w, blocks[n].count);
  }

  // Pass 2: one ratio per adapted parameter.
  std::vector<double> ratios(parameters.size(), 1.0);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::size_t first = first_of[i], end = first_of[i + 1];
    if (first != end && adapts(parameters[i].name)) ratios[i] = ratio_of(std::span(norms).subspan(first, end - first));
  }

  // Pass 3: the weights that need their ratio.
  std::vector<ops::UpdateBlock> waiting;
  for (std::size_t n = 0; n < blocks.size(); ++n) {
    if (!blocks[n].adapted) continue;
    waiting.push_back(blocks[n]);
    waiting.back().rate = static_cast<float>(ratios[owner_of[n]] * learning_rate);
  }
  ops::update_weights(device, constants, waiting);

  for (const ParamRef& parameter : parameters) {
    if (parameter.g != nullptr && parameter.version != nullptr) ++*parameter.version;
  }
  return ratios;
}

// Moments for the part this process owns, without values.
Optimizer::Moments Optimizer::made_moments(const ParamRef& parameter, std::size_t index) const {
  Moments moments;
  moments.part = part_of(parameter, index, division_);
  moments.shape = parameter.shape;
  const std::vector<std::int64_t> shape =
      division_ == nullptr ? parameter.shape : std::vector<std::int64_t>{moments.part.count};
  moments.m = Tensor::zeros(shape, Purpose::moments, parameter.device);
  moments.v = Tensor::zeros(shape, Purpose::moments, parameter.device);
  return moments;
}

// Moments of a parameter, created as zeros at its first gradient, on the parameter's device.
const Optimizer::Moments& Optimizer::moments_of(const ParamRef& parameter, std::size_t index) {
  Moments& moments = moments_[parameter.name];
  if (!moments.m) moments = made_moments(parameter, index);
  if (moments.m.size() != part_of(parameter, index, division_).count) {
    fail("optimizer", "{} must match its moments: {} numbers, moments {}", parameter.name, parameter.size,
         moments.m.shape_text());
  }
  moments.m = moments.m.to(parameter.device);
  moments.v = moments.v.to(parameter.device);
  return moments;
}

std::map<std::string, Tensor> Optimizer::moments() const {
  if (division_ != nullptr) return collected_moments();
  std::map<std::string, Tensor> all;
  for (const auto& [name, moments] : moments_) {
    all[name + "/adam_m"] = moments.m;
    all[name + "/adam_v"] = moments.v;
  }
  return all;
}

std::map<std::string, Tensor> Optimizer::collected_moments() const {
  std::map<std::string, Tensor> all;
  std::vector<Tensor> on_host;  // kept alive while they are sent
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  const auto take = [&](const std::string& name, const Moments& moments, const Tensor& own) {
    const Tensor& part = on_host.emplace_back(own.to(Device::cpu));
    if (!division_->processes.first()) {
      if (part.size() > 0) out.push_back({0, part.data(), bytes_of(part.size())});
      return;
    }
    const Tensor whole = all[name] = Tensor::empty(moments.shape, Purpose::scratch);
    std::copy_n(part.data(), part.size(), whole.data() + moments.part.first);
    for (int rank = 1; rank < division_->processes.size(); ++rank) {
      const NumberRange theirs = division_->shards.part(rank, moments.part.parameter);
      if (theirs.count > 0) in.push_back({rank, whole.data() + theirs.first, bytes_of(theirs.count)});
    }
  };
  for (const auto& [name, moments] : moments_) {
    take(name + "/adam_m", moments, moments.m);
    take(name + "/adam_v", moments, moments.v);
  }
  division_->processes.exchange(out, in);
  return all;
}

void Optimizer::set_moments(const std::map<std::string, Tensor>& moments, std::span<const ParamRef> parameters) {
  std::map<std::string, Moments, std::less<>> taken;
  std::size_t used = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParamRef& parameter = parameters[i];
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
    Moments& own = taken[parameter.name];
    if (division_ == nullptr) {
      own = {m->second, v->second, {i, 0, parameter.size}, parameter.shape};
    } else {
      own = made_moments(parameter, i);
      const auto take = [&](const Tensor& whole, const Tensor& part) {
        copy_bytes(part.device(), part.data(), whole.device(), whole.data() + own.part.first, bytes_of(part.size()));
      };
      take(m->second, own.m);
      take(v->second, own.v);
    }
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

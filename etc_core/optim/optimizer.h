// AdamW and LAMB as in the reference (etc-core 10.3, 10.4; LAMB: You et al. 2020), and RAdam as in ADMIN's program
// (translation 7; Liu et al. 2020).
//
// The first two differ from the textbook: no bias correction, ε outside the root, decay multiplied by the learning
// rate, and exclusion from decay by substrings of the parameter's name. One step of the training loop is
//   norm = global_norm(params); optimizer.step(params, learning_rate(schedule, step), clip_scale(norm, 1.0))
// Everything is computed in fixed blocks without fused multiply-adds (update.h), so the new weights have the same bits
// for any thread count and on any x86-64 machine.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/nn/parameters.h"
#include "etc_core/optim/shards.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// One parameter in one step.
struct ParamRef {
  std::string name;  // its checkpoint name, to which exclusions apply
  float* w = nullptr;
  const float* g = nullptr;  // null: no gradient, the parameter is not changed (no decay either)
  std::int64_t size = 0;
  std::vector<std::int64_t> shape;
  std::uint64_t* version = nullptr;  // incremented when w changes; null: not needed
  Device device = Device::cpu;       // of w and g, the same for all parameters of a step
};

// The parameters of a model with the gradients they have now.
std::vector<ParamRef> param_refs(const ParameterSet& parameters);

// Euclidean norm of all gradients together, dense, in double; parameters without gradient are skipped. With a division,
// every process reads the numbers it owns, and all get the same norm, with the same bits as a single process.
double global_norm(std::span<const ParamRef> parameters, const Division* division = nullptr);

// The factor that limits the norm of the gradients to max_norm: max_norm / max(norm, max_norm); 1 when max_norm is 0
// (no clipping). Throws Error when the norm is nan or infinite, because the moments would never recover.
double clip_scale(double norm, double max_norm);

enum class OptimizerKind { adamw, lamb, radam };
// "adamw" | "lamb" | "radam"; else UsageError with a suggestion
OptimizerKind optimizer_kind(const std::string& name);

// RAdam's factor on m/(sqrt(v)+ε) in update number t = 1, 2, …, without the learning rate:
//   ρ_∞ = 2/(1-β₂) - 1,   ρ_t = ρ_∞ - 2t·β₂^t/(1-β₂^t)
//   sqrt((1-β₂^t)(ρ_t-4)(ρ_t-2)ρ_∞ / ((ρ_∞-4)(ρ_∞-2)ρ_t)) / (1-β₁^t)   where ρ_t >= 5, else 0
double radam_factor(double beta_1, double beta_2, std::int64_t update);

// A smaller ε is flushed to 0 as a float, and the update of a weight whose gradient was always 0 would be 0/0.
inline constexpr double kLeastEpsilon = 1e-37;

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;  // λ; 0: none, but LAMB's exclusions still apply
  // Case-sensitive substrings of names.
  std::vector<std::string> exclude_from_decay = {"LayerNorm", "layer_norm", "bias", "rezero_alpha", "admin_omega"};
  std::vector<std::string> exclude_from_adaptation = {};  // LAMB; empty: as exclude_from_decay
};

class Optimizer {
 public:
  // division: this process keeps only the moments of the numbers it owns, and step() changes only those numbers; null:
  // of all numbers. It must outlive this object. Throws UsageError on values outside their ranges.
  explicit Optimizer(OptimizerOptions options, const Division* division = nullptr);

  const OptimizerOptions& options() const { return options_; }
  bool decays(std::string_view name) const;
  bool adapts(std::string_view name) const;

  // One update of every parameter with a gradient, g being its gradient times gradient_scale:
  //   m = β₁m + (1-β₁)g      v = β₂v + (1-β₂)g²      u = m/(sqrt(v)+ε) + λw (λ only where it decays)
  //   w = w - ρ·lr·u         ρ = ‖w‖/‖u‖ where LAMB adapts and both are > 0, else 1; not clamped
  // RAdam, t being the number of this update: w = w - λ·lr·w - lr·radam_factor(t)·m/(sqrt(v)+ε).
  // m and v begin as zeros, beside w, when a parameter has its first gradient. Returns ρ for every parameter in order
  // (1 for AdamW and for unchanged parameters). Rules: throws Error when a name is given twice or a parameter's size is
  // not that of its moments. Cost: reads and writes w, m, v once and reads g once (28 bytes a number); LAMB reads w, m,
  // v once more.
  std::vector<double> step(std::span<const ParamRef> parameters, double learning_rate, double gradient_scale = 1);

  // The number of updates done so far, which RAdam needs; to be saved and set when a run is resumed.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  // Moments under "<name>/adam_m" and "<name>/adam_v", for saving: handles, not copies. Parameters that never had a
  // gradient have none. With a division it is a collective call: rank 0 gets all numbers, on the host, the others none.
  std::map<std::string, Tensor> moments() const;

  // Takes over saved moments, replacing the current ones. Throws Error without changing anything when a tensor belongs
  // to none of the parameters, has another shape, or one of the two is missing. With a division, only owned numbers are
  // kept.
  void set_moments(const std::map<std::string, Tensor>& moments, std::span<const ParamRef> parameters);

 private:
  struct Moments {
    Tensor m, v;                      // of the parameter's shape; with a division [part.count]
    NumberRange part;                 // the part of the parameter to which they belong
    std::vector<std::int64_t> shape;  // of the parameter
  };
  const Moments& moments_of(const ParamRef& parameter, std::size_t index);
  Moments made_moments(const ParamRef& parameter, std::size_t index) const;
  std::map<std::string, Tensor> collected_moments() const;

  // rate: factor of the update m/(sqrt(v)+ε) + decay·w; decay: used for parameters that decay. alone: if there is no
  // update, the fraction by which decaying parameters shrink.
  struct Rates {
    double rate, decay, alone = 0;
  };
  Rates rates(double learning_rate) const;

  struct Work;
  Work collect(std::span<const ParamRef> parameters, const Rates& rates);

  OptimizerOptions options_;
  const Division* division_;
  std::int64_t updates_ = 0;
  std::map<std::string, Moments, std::less<>> moments_;
};

}  // namespace etc

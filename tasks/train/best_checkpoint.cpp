#include "tasks/train/best_checkpoint.h"

#include <cmath>

#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

// The same variables without values.
ParameterSet without_values(const ParameterSet& parameters) {
  ParameterSet same;
  for (const auto& parameter : parameters.all()) same.add(parameter->name, parameter->shape, parameter->initializer);
  return same;
}

}  // namespace

bool is_better(const Metrics& now, const Metrics& best) {
  if (best.empty()) return true;
  const double ours = now.front().second, theirs = best.front().second;
  return std::isnan(theirs) ? !std::isnan(ours) : ours > theirs;  // false when ours is NaN
}

BestCheckpoint::BestCheckpoint(fs::path folder, const Json& config, const MoreFiles& files)
    : folder_(std::move(folder)), config_(config), files_(files) {}

void BestCheckpoint::replace(const ParameterSet& parameters, std::int64_t step) {
  kept_.reset();  // an older best is obsolete now; free its memory
  try {
    save_model(folder_, config_, parameters, files_);
  } catch (const std::runtime_error& error) {  // Error, or an exception of std::filesystem
    log::warn("checkpoint `best` of step {} not saved, its weights are kept in memory until it can be: {}", step,
              error.what());
    tried_step_ = step;
    keep(parameters, step);
  }
}

void BestCheckpoint::retry(std::int64_t step) {
  if (saved() || tried_step_ == step) return;
  try {
    save_model(folder_, config_, kept_->parameters, files_);
    log::info("checkpoint `best` of step {} is saved now", kept_->step);
    kept_.reset();
  } catch (const std::runtime_error& error) {
    log::warn("checkpoint `best` of step {} still not saved: {}", kept_->step, error.what());
    tried_step_ = step;
  }
}

void BestCheckpoint::write_kept(const fs::path& last, std::int64_t step) const {
  if (saved() || kept_->step == step) return;
  TensorFileWriter file;
  for (const auto& parameter : kept_->parameters.all()) file.add(parameter->name, parameter->value);
  file.write(last / kKeptFile);
}

void BestCheckpoint::read_kept(const fs::path& last, const ParameterSet& parameters, std::int64_t step,
                               std::int64_t best_step) {
  if (best_step == step) return keep(parameters, step);
  ParameterSet stored = without_values(parameters);
  load_parameters(last / kKeptFile, stored);
  kept_ = std::make_unique<Kept>(Kept{std::move(stored), best_step});
}

void BestCheckpoint::keep(const ParameterSet& parameters, std::int64_t step) {
  ParameterSet copy = without_values(parameters);
  for (std::size_t i = 0; i < copy.all().size(); ++i) {
    const Tensor& value = parameters.all()[i]->value;
    copy.all()[i]->value = value.device() == Device::cpu ? value.clone() : value.to(Device::cpu);
  }
  kept_ = std::make_unique<Kept>(Kept{std::move(copy), step});
}

}  // namespace etc

#include "tasks/cli/encoder_call.h"

#include <algorithm>
#include <ctime>

#include "etc_core/base/counting.h"
#include "etc_core/base/profiler.h"
#include "tasks/train/forecast.h"

namespace etc::cli {

namespace {

// Names of the update's two parts in the profile.
constexpr const char *kNorm = "gradient_norm", *kUpdate = "optimizer";

}  // namespace

void EncoderCall::initialize(Device device) {
  parameters_.initialize(1);
  parameters_.to(device);
  if (mode_ == CallMode::infer) encoder_->release_kernels(compute_);
}

void EncoderCall::run(const EncoderInput& input) {
  forward_backward(input);
  if (mode_ == CallMode::infer) return;
  const auto parameters = param_refs(parameters_);
  double scale = 0;
  {
    const profiler::Scope profiled(kNorm, {0, 4 * gradient_numbers()});
    scale = clip_scale(global_norm(parameters), 1.0);
  }
  optimizer_.step(parameters, 1e-6, scale);
  parameters_.drop_gradients();
}

std::vector<profiler::Row> EncoderCall::count(const EncoderInput& input) {
  for (const auto& parameter : parameters_.all()) parameter->allocate();
  if (mode_ == CallMode::infer) encoder_->release_kernels(compute_);
  forward_backward(input);
  const std::vector<Tensor> moments = moments_without_values(parameters_);
  parameters_.drop_gradients();
  memory_ledger::reset_peak();
  profiler::start();
  forward_backward(input);
  profiler::stop();
  std::vector<profiler::Row> work = profiler::rows();
  if (mode_ == CallMode::infer) return work;
  // The update is not run for it: it would read and write every number.
  work.push_back({kNorm, 1, 0, {0, 4 * gradient_numbers()}});
  work.push_back({kUpdate, 1, 0, {0, 28 * gradient_numbers()}});
  return work;
}

void EncoderCall::forward_backward(const EncoderInput& input) {
  Tape tape(mode_ == CallMode::train ? Recording::on : Recording::off);
  ForwardOptions options;
  options.training = mode_ == CallMode::train;
  options.compute = compute_;
  EncoderStates states = encoder_->forward(tape, input, options);
  if (mode_ == CallMode::infer) return;
  // Any gradient will do; its size has no influence on the time.
  for (Var* var : {&states.long_states, &states.global_states}) {
    if (!var->defined()) continue;
    const Tensor gradient = Tensor::empty(var->value().shape(), Purpose::activations);
    std::fill_n(gradient.data(), counting() ? 0 : gradient.size(), 1e-3f);
    var->gradient()->add(gradient.to(var->value().device()));
  }
  states = {};
  tape.backward();
}

double EncoderCall::gradient_numbers() const {
  double numbers = 0;
  for (const auto& parameter : parameters_.all()) {
    if (parameter->grad) numbers += static_cast<double>(parameter->size());
  }
  return numbers;
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace etc::cli

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

EncoderCall::EncoderCall(const EncoderConfig& model, CallMode mode, InferenceTypes types)
    : mode_(mode), types_(types), encoder_(model.make_encoder(parameters_)), optimizer_({}) {
  const auto* const both = dynamic_cast<const Seq2SeqConfig*>(&model);
  if (both != nullptr) decoder_ = std::make_unique<Seq2SeqDecoder>(*both, parameters_);
}

void EncoderCall::release() {
  encoder_->release_kernels(types_);
  if (decoder_) decoder_->release_kernels(types_);
}

void EncoderCall::initialize(Device device) {
  parameters_.initialize(1);
  parameters_.to(device);
  if (mode_ == CallMode::infer) release();
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
  if (mode_ == CallMode::infer) release();
  forward_backward(input);
  const std::vector<Tensor> moments = moments_without_values(parameters_);
  parameters_.drop_gradients();
  memory_ledger::reset_peak();
  profiler::start();
  forward_backward(input);
  profiler::stop();
  std::vector<profiler::Row> work = profiler::rows();
  if (mode_ == CallMode::infer) return work;
  // The update is not run for counting: it would read and write every number.
  work.push_back({kNorm, 1, 0, {0, 4 * gradient_numbers()}});
  work.push_back({kUpdate, 1, 0, {0, 28 * gradient_numbers()}});
  return work;
}

void EncoderCall::forward_backward(const EncoderInput& input) {
  Tape tape(mode_ == CallMode::train ? Recording::on : Recording::off);
  ForwardOptions options;
  options.training = mode_ == CallMode::train;
  options.compute = types_.compute;
  EncoderStates states = encoder_->forward(tape, input, options);
  if (decoder_) {
    decode(tape, input, states.long_states, options);
    states = {};
    if (mode_ == CallMode::train) tape.backward();
    return;
  }
  if (mode_ == CallMode::infer) return;
  // Any gradient will do; its values have no influence on the time.
  for (Var* var : {&states.long_states, &states.global_states}) {
    if (!var->defined()) continue;
    const Tensor gradient = Tensor::empty(var->value().shape(), Purpose::activations);
    std::fill_n(gradient.data(), counting() ? 0 : gradient.size(), 1e-3f);
    var->gradient()->add(gradient.to(var->value().device()));
  }
  states = {};
  tape.backward();
}

// A target with as many tokens, all equal: labels have no influence on time or memory.
void EncoderCall::decode(Tape& tape, const EncoderInput& input, const Var& states, const ForwardOptions& options) {
  const std::vector<std::int32_t> target(input.token_ids.size(), Seq2SeqConfig::kEndOfSentence);
  const Var rows =
      decoder_->forward(tape, states, {input.long_offsets, input.long_offsets, target, input.sample_ordinals}, options);
  if (mode_ == CallMode::infer) {
    vocabulary_loss(rows.value(), decoder_->packed_output(), target);
    return;
  }
  constexpr double kScale = 1e-3, kSmoothing = 0.1;
  rows.gradient()->add(vocabulary_loss_with_gradients(rows.value(), decoder_->output(), target, kScale, kSmoothing).dx);
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

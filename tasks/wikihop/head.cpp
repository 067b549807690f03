#include "tasks/wikihop/head.h"

#include "etc_core/autograd/functions.h"
#include "etc_core/ops/activation.h"
#include "etc_core/ops/cross_entropy.h"
#include "tasks/feed/dropout_rows.h"

namespace etc::wikihop {

namespace {

constexpr const char* kScope = "global_output_layer/transform/";

}  // namespace

Head::Head(const EncoderConfig& model, bool add_final_layer, ParameterSet& parameters)
    : activation_(ops::activation_from_name(model.hidden_act)),
      dropout_rate_(static_cast<float>(model.hidden_dropout_prob)) {
  using Kind = Initializer::Kind;
  const std::int64_t hidden = model.hidden_size;       // H
  const std::int64_t inner = model.intermediate_size;  // F
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, Kind kind) {
    return &parameters.add(std::string(kScope) + name, std::move(shape), {kind, 0});
  };
  if (add_final_layer) {
    block_.kernel_0 = add("dense_layers/layer_0/kernel", {hidden, inner}, Kind::glorot_uniform);
    block_.bias_0 = add("dense_layers/layer_0/bias", {inner}, Kind::zeros);
    block_.kernel_1 = add("dense_layers/layer_1/kernel", {inner, hidden}, Kind::glorot_uniform);
    block_.bias_1 = add("dense_layers/layer_1/bias", {hidden}, Kind::zeros);
    block_.gamma = add("layer_norm/gamma", {hidden}, Kind::ones);
    block_.beta = add("layer_norm/beta", {hidden}, Kind::zeros);
  }
  weights_ = &parameters.add("output_weights", {1, hidden},
                             {Kind::truncated_normal, static_cast<float>(model.initializer_range)});
  bias_ = &parameters.add("output_bias", {1}, {Kind::zeros, 0});
}

Var Head::logits(Tape& tape, const Var& global_states, const EncoderInput& input, const ForwardOptions& options) const {
  Var y = global_states;  // [U, H]
  if (block_.kernel_0 != nullptr) {
    Dropout dropout;
    if (options.training && dropout_rate_ > 0) {
      dropout = {dropout_rate_, options.seed, 0, DropoutSite::head, feed::dropout_rows(input, input.global_offsets)};
    }
    const Dense first{{{block_.kernel_0, block_.bias_0}}};
    const Dense second{{{block_.kernel_1, block_.bias_1}}};
    const Var branch = feed_forward(tape, y, first, activation_, second);            // [U, H]
    y = residual_layer_norm(tape, y, branch, *block_.gamma, *block_.beta, dropout);  // [U, H]
  }
  Dense output{{{weights_, bias_}}};
  output.layout = ops::WeightLayout::out_in;
  return linear(tape, y, output);  // [U, 1]
}

std::vector<double> candidate_losses(const CandidateLoss& args) {
  const auto groups = static_cast<std::int64_t>(args.labels.size());  // B
  std::vector<float> target(args.counted.size(), 0.0f);               // [U]; an example without a label keeps zeros
  for (std::size_t b = 0; b < args.labels.size(); ++b) {
    if (args.labels[b] < 0) continue;
    const auto begin = static_cast<std::size_t>(args.offsets[b]), end = static_cast<std::size_t>(args.offsets[b + 1]);
    double candidates = 0;  // C
    for (std::size_t j = begin; j < end; ++j) candidates += args.candidates[j];
    for (std::size_t j = begin; j < end; ++j) {
      const bool is_label = j - begin == static_cast<std::size_t>(args.labels[b]);
      const double t = (is_label ? 1 - args.label_smoothing : 0) + args.label_smoothing / candidates;
      target[j] = static_cast<float>(args.candidates[j] != 0 ? t : 0);
    }
  }
  std::vector<double> losses(args.labels.size());  // [B]
  ops::CrossEntropy entropy;
  entropy.groups = groups;
  entropy.offsets = args.offsets.data();
  entropy.logits = args.logits;
  entropy.counted = args.counted.data();
  entropy.target = target.data();
  entropy.scale = 1 / args.denominator;
  entropy.losses = losses.data();
  entropy.dlogits = args.dlogits;
  ops::cross_entropy(Device::cpu, entropy);
  return losses;
}

}  // namespace etc::wikihop

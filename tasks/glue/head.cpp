#include "tasks/glue/head.h"

#include <numeric>

#include "etc_core/autograd/functions.h"
#include "tasks/feed/dropout_rows.h"

namespace etc::glue {

namespace {

// One row per example: [B+1].
std::vector<std::int64_t> pooled_offsets(const EncoderInput& input) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(input.batch() + 1));
  std::iota(offsets.begin(), offsets.end(), std::int64_t{0});
  return offsets;
}

}  // namespace

Head::Head(const EncoderConfig& model, std::int64_t outputs, ParameterSet& parameters)
    : dropout_rate_(static_cast<float>(model.hidden_dropout_prob)),
      pooler_{{{&parameters.add("bert/pooler/dense/kernel", {model.hidden_size, model.hidden_size},
                                {Initializer::Kind::truncated_normal, static_cast<float>(model.initializer_range)}),
                &parameters.add("bert/pooler/dense/bias", {model.hidden_size}, {Initializer::Kind::zeros, 0})}}},
      output_(parameters, "", outputs, model.hidden_size) {}

Var Head::logits(Tape& tape, const Var& long_states, const EncoderInput& input, const ForwardOptions& options) const {
  Dropout dropped;
  if (options.training && dropout_rate_ > 0) {
    dropped = {dropout_rate_, options.seed, 0, DropoutSite::head, feed::dropout_rows(input, pooled_offsets(input))};
  }
  const Var first = span::first_rows(tape, long_states, input.long_offsets);                 // [B, H]
  const Var pooled = activation(tape, linear(tape, first, pooler_), ops::Activation::tanh);  // [B, H]
  return output_.logits(tape, dropout(tape, pooled, dropped));                               // [B, n]
}

std::vector<double> score_losses(const ScoreLoss& args) {
  std::vector<double> losses(args.scores.size());
  for (std::size_t b = 0; b < losses.size(); ++b) {
    const double difference = args.scored[b] != 0 ? args.logits[b] - args.scores[b] : 0;
    losses[b] = difference * difference;
    if (args.dlogits != nullptr) args.dlogits[b] = static_cast<float>(2 * difference * args.scale);
  }
  return losses;
}

}  // namespace etc::glue

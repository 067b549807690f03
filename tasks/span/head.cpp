#include "tasks/span/head.h"

namespace etc::span {

OutputLayer::OutputLayer(ParameterSet& parameters, const std::string& prefix, std::int64_t outputs, std::int64_t hidden,
                         float spread) {
  using Kind = Initializer::Kind;
  dense_.parts = {{&parameters.add(prefix + "output_weights", {outputs, hidden}, {Kind::truncated_normal, spread}),
                   &parameters.add(prefix + "output_bias", {outputs}, {Kind::zeros, 0})}};
  dense_.layout = ops::WeightLayout::out_in;  // as in published checkpoints
}

Var OutputLayer::logits(Tape& tape, const Var& x) const {
  return linear(tape, x, dense_);  // [M, H] -> [M, n]
}

Var first_rows(Tape& tape, const Var& x, const std::vector<std::int64_t>& offsets) {
  return gather_rows(tape, x, {offsets.begin(), offsets.end() - 1});  // [B, H]
}

}  // namespace etc::span

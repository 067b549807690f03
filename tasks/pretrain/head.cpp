#include "tasks/pretrain/head.h"

#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/token_table.h"

namespace etc::pretrain {

Head::Head(const EncoderConfig& model, const Options& options, ParameterSet& parameters) : cpc_(options.cpc()) {
  const std::int64_t hidden = model.hidden_size;  // H
  const Initializer kernel = truncated_normal(model.initializer_range);
  const std::string predictions = "cls/predictions/";
  vocabulary_.table = &token_table(parameters);
  const std::int64_t width = vocabulary_.table->shape.at(1);  // E_w
  transform_ = single(add_dense(parameters, predictions + "transform/dense", hidden, width, kernel));
  norm_ = add_layer_norm(parameters, predictions + "transform/LayerNorm", width);
  vocabulary_.bias = &parameters.add(predictions + "output_bias", {vocabulary_.table->shape.at(0)}, kZeros);
  if (options.nsp()) {
    pooler_ = single(add_dense(parameters, "bert/pooler/dense", hidden, hidden, kernel));
    const std::string relation = "cls/seq_relationship/output_";
    next_sentence_ = single(
        {&parameters.add(relation + "weights", {2, hidden}, kernel), &parameters.add(relation + "bias", {2}, kZeros)});
    next_sentence_->layout = ops::WeightLayout::out_in;  // as in the published checkpoints
  }
  if (cpc_ && options.cpc_projection) {
    projection_ = single(add_dense(parameters, "cls/cpc/projection", hidden, hidden, kernel));
  }
}

HeadOutput Head::forward(Tape& tape, const Batch& batch, const EncoderStates& states) const {
  const Var masked = gather_rows(tape, states.long_states, batch.masked_rows);                  // [P, H]
  const Var inner = activation(tape, linear(tape, masked, transform_), ops::Activation::gelu);  // [P, E_w]
  HeadOutput outputs = {layer_norm(tape, inner, *norm_.gamma, *norm_.beta)};
  if (next_sentence_) {
    const Var first = gather_rows(tape, states.long_states, batch.first_rows);                  // [B, H]
    const Var pooled = activation(tape, linear(tape, first, *pooler_), ops::Activation::tanh);  // [B, H]
    outputs.push_back(linear(tape, pooled, *next_sentence_));                                   // [B, 2]
  }
  if (cpc_) {
    const Var predicted = gather_rows(tape, states.global_states, batch.predicted_rows);  // [m, H]
    outputs.push_back(projection_ ? linear(tape, predicted, *projection_) : predicted);   // [m, H]
    outputs.push_back(gather_rows(tape, states.global_states, batch.target_rows));        // [m, H]
  }
  return outputs;
}

}  // namespace etc::pretrain

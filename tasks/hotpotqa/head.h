// The HotpotQA heads and their losses (task-hotpotqa 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "etc_core/nn/encoder.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "tasks/hotpotqa/decode.h"
#include "tasks/span/head.h"
#include "tasks/task.h"

namespace etc::hotpotqa {

// Positions of a HeadOutput.
enum Logit : std::size_t { kFactLogits = 0, kTypeLogits = 1, kAnswerLogits = 2 };

// Three linear layers on the final states, without dropout; no logit is masked.
//   facts   [U, 1]  of every global token;      type [B, 3] of every example's global CLS: span, yes, no
//   answer  [T, 2]  begin and end of every long token, or with BIO [T, 3]: begin, inside, outside
// Parameters: supporting_facts_, answer_type_, answer_span_ or answer_bio_ + output_weights, output_bias.
class Head {
 public:
  Head(const EncoderConfig& model, AnswerEncoding encoding, ParameterSet& parameters);
  HeadOutput logits(Tape& tape, const EncoderStates& states, const EncoderInput& input) const;

 private:
  span::OutputLayer facts_, type_, answer_;
};

// Targets of the losses. An example without labels has type span::kNoLabel and is excluded from all of them.
struct Labels {
  std::vector<std::uint8_t> facts;  // [U]
  std::vector<std::int64_t> types;  // [B]
  std::vector<std::int64_t> spans;  // [B, 2] begin and end within the example; empty with BIO
  std::vector<std::int64_t> bio;    // [T]; empty with spans
};
Labels labels_of(Examples examples, AnswerEncoding encoding);

// Terms of the loss: supporting_facts, answer_type, then answer_begin and answer_end, or answer_bio.
std::vector<std::string> loss_terms(AnswerEncoding encoding);

// Each example's terms. All given positions are counted: golden cases also give the reference's padding.
//   facts   Σ_j max(x,0) − x·y + log(1 + e^−|x|)    over the global tokens
//   type, begin, end  −log softmax(…)[label]          0 for a begin or end outside the example
//   bio     Σ_i −log softmax(z_i)[label_i]            over the long tokens
//   long_offsets, global_offsets [B+1]; logits as Head makes them
//   scales [terms]: factors of the gradients written to dlogits; null: not computed
// Returns [terms][B], before division. Same bits for any thread count and any neighbours.
struct LossArguments {
  AnswerEncoding encoding = AnswerEncoding::span;
  std::span<const std::int64_t> long_offsets, global_offsets;
  const Labels* labels = nullptr;
  const float* logits[3] = {};
  std::span<const double> scales;
  float* dlogits[3] = {};
};
std::vector<std::vector<double>> losses(const LossArguments& args);

}  // namespace etc::hotpotqa

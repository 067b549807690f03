// Converts a batch of examples to encoder input: the loop shared by every task's feed().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "sparse/labels/builders.h"
#include "tasks/task.h"

namespace etc::feed {

// Checks one example, appends its token ids to the input and returns the structure of its tokens.
using AddExample = std::function<sparse::AttentionStructure(EncoderInput& input, const data::Example& example)>;

// Builds a batch example by example: the caller appends an example's token ids to the input and then ends the example.
class BatchBuilder {
 public:
  explicit BatchBuilder(const EncoderConfig& model) : model_(model) {}

  EncoderInput& input() { return input_; }
  // structure: of the tokens appended since the last example; sample_ordinal: the key of its dropout. Global tokens are
  // left out if the encoder has none.
  void end_example(sparse::AttentionStructure structure, std::int64_t sample_ordinal);
  EncoderInput finish(bool global_attention);  // sets offsets, ordinals and the label tensors

 private:
  const EncoderConfig& model_;
  EncoderInput input_;
  std::vector<sparse::AttentionStructure> structures_;
};

// Input of the examples in their order: the tokens that `add` appends (without global tokens if the encoder has none),
// offsets, ordinals and the label tensors (global_attention false: GlobalAttention::read_out).
EncoderInput batch_input(Examples examples, const EncoderConfig& model, bool global_attention, const AddExample& add);

// Throws UsageError "config: <what> needs …" unless the encoder has global tokens; what: the key or task that needs
// them.
void require_global_tokens(const EncoderConfig& model, const std::string& what);

}  // namespace etc::feed

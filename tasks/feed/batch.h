// A batch as encoder input: the walk over its examples that every task's feed() is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "sparse/labels/builders.h"
#include "tasks/task.h"

namespace etc::feed {

// Checks one example, puts its token ids at the input's end and says how its tokens belong together.
using AddExample = std::function<sparse::AttentionStructure(EncoderInput& input, const data::Example& example)>;

// A batch as its examples come: whoever adds one puts its token ids at the input's end and then ends it.
class BatchBuilder {
 public:
  explicit BatchBuilder(const EncoderConfig& model) : model_(model) {}

  EncoderInput& input() { return input_; }
  // structure: how the tokens since the last example belong together; sample_ordinal: keys its dropout. Global tokens
  // are left out where the encoder has none.
  void end_example(sparse::AttentionStructure structure, std::int64_t sample_ordinal);
  EncoderInput finish(bool global_attention);  // offsets, ordinals and the label tensors

 private:
  const EncoderConfig& model_;
  EncoderInput input_;
  std::vector<sparse::AttentionStructure> structures_;
};

// Input of the examples in their order: what `add` puts there, without the global tokens where the encoder has none,
// offsets, ordinals and the label tensors (global_attention false: GlobalAttention::read_out).
EncoderInput batch_input(Examples examples, const EncoderConfig& model, bool global_attention, const AddExample& add);

// Throws UsageError "config: <what> needs …" unless the encoder has global tokens; what: the key or task that does.
void require_global_tokens(const EncoderConfig& model, const std::string& what);

}  // namespace etc::feed

#include "tasks/feed/batch.h"

#include "etc_core/base/error.h"

namespace etc::feed {

void BatchBuilder::end_example(sparse::AttentionStructure structure, std::int64_t sample_ordinal) {
  structures_.push_back(std::move(structure));
  if (!model_.has_global_tokens()) input_.global_token_ids.clear();
  input_.long_offsets.push_back(std::ssize(input_.token_ids));
  input_.global_offsets.push_back(std::ssize(input_.global_token_ids));
  input_.sample_ordinals.push_back(sample_ordinal);
}

EncoderInput BatchBuilder::finish(bool global_attention) {
  input_.labels = model_.labels(std::move(structures_), etc::global_attention(global_attention));
  return std::move(input_);
}

EncoderInput batch_input(Examples examples, const EncoderConfig& model, bool global_attention, const AddExample& add) {
  BatchBuilder builder(model);
  for (const data::LoadedExample& loaded : examples) {
    sparse::AttentionStructure structure = add(builder.input(), loaded.features);
    builder.end_example(std::move(structure), loaded.sample_ordinal);
  }
  return builder.finish(global_attention);
}

void require_global_tokens(const EncoderConfig& model, const std::string& what) {
  if (model.has_global_tokens()) return;
  fail_usage("config", "{} needs an encoder with global tokens, and this kind of model has none", what);
}

}  // namespace etc::feed

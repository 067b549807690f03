#include "tasks/feed/batch.h"

#include "etc_core/base/error.h"

namespace etc::feed {

EncoderInput batch_input(Examples examples, const EncoderConfig& model, bool global_attention, const AddExample& add) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const data::LoadedExample& loaded : examples) {
    structures.push_back(add(input, loaded.features));
    if (!model.has_global_tokens()) input.global_token_ids.clear();
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(std::ssize(input.global_token_ids));
    input.sample_ordinals.push_back(loaded.sample_ordinal);
  }
  input.labels = model.labels(std::move(structures), etc::global_attention(global_attention));
  return input;
}

void require_global_tokens(const EncoderConfig& model, const std::string& what) {
  if (model.has_global_tokens()) return;
  fail_usage("config", "{} needs an encoder with global tokens, and this kind of model has none", what);
}

}  // namespace etc::feed

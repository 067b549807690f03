#include "tasks/feed/batch.h"

namespace etc::feed {

EncoderInput batch_input(Examples examples, const EncoderConfig& model, bool global_attention, const AddExample& add) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const data::LoadedExample& loaded : examples) {
    structures.push_back(add(input, loaded.features));
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(std::ssize(input.global_token_ids));
    input.sample_ordinals.push_back(loaded.sample_ordinal);
  }
  input.labels = model.labels(std::move(structures), etc::global_attention(global_attention));
  return input;
}

}  // namespace etc::feed

#include "tasks/nq/feed.h"

#include <limits>

#include "tasks/feed/features.h"

namespace etc::nq {

using feed::numbers;

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("token_ids");
  examination.length("global_token_ids");
  examination.same_length("sentence_ids", length);
  examination.same_length("token_pos", length);
  examination.token_ids("token_ids", model.vocab_size);
  examination.token_ids("global_token_ids", model.vocab_size);
  examination.in_range("sentence_ids", 0, length);  // blocks may be more than the global tokens
  examination.in_range("token_pos", -1, std::numeric_limits<std::int64_t>::max());
  for (const char* label : {"sa_start", "sa_end", "la_start", "la_end"}) {
    examination.number_in_range(label, 0, length);
  }
  examination.number_in_range("answer_type", -1, 5);
}

EncoderInput feed(Examples examples, const EncoderConfig& model, bool global_attention, const std::string& where) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const data::LoadedExample& loaded : examples) {
    const data::Example& example = loaded.features;
    check_example(example, model, where);
    feed::append(input.token_ids, numbers(example, "token_ids"));
    feed::append(input.global_token_ids, numbers(example, "global_token_ids"));
    input.long_offsets.push_back(std::ssize(input.token_ids));
    input.global_offsets.push_back(std::ssize(input.global_token_ids));
    input.sample_ordinals.push_back(loaded.sample_ordinal);
    const std::vector<std::int32_t> long_ids(numbers(example, "token_ids").size(), 1);
    const std::vector<std::int32_t> global_ids(numbers(example, "global_token_ids").size(), 1);
    structures.push_back(
        sparse::structure_from_example_ids(long_ids, global_ids, feed::narrowed(numbers(example, "sentence_ids"))));
  }
  input.labels = model.labels(std::move(structures), etc::global_attention(global_attention));
  return input;
}

}  // namespace etc::nq

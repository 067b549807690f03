#include "tasks/feed/multihop.h"

namespace etc::feed {

Sizes check_multihop(const data::Example& example, const Examination& examination, const EncoderConfig& model) {
  const Sizes sizes{examination.length("long_token_ids"), examination.length("global_token_ids")};
  for (const char* feature :
       {"long_token_type_ids", "long_sentence_ids", "long_paragraph_ids", "long_paragraph_breakpoints"}) {
    examination.same_length(feature, sizes.length);
  }
  for (const char* feature : {"global_token_type_ids", "global_paragraph_breakpoints"}) {
    examination.same_length(feature, sizes.globals);
  }
  examination.token_ids("long_token_ids", model.vocab_size);
  examination.token_ids("global_token_ids", model.vocab_size);
  examination.in_range("long_sentence_ids", -1, sizes.globals);
  examination.in_range("long_paragraph_ids", -1, sizes.globals);
  examination.in_range("long_paragraph_breakpoints", 0, 2);
  examination.in_range("global_paragraph_breakpoints", 0, 2);
  examination.ends_with_one("long_paragraph_breakpoints");
  examination.ends_with_one("global_paragraph_breakpoints");
  return sizes;
}

sparse::AttentionStructure multihop_structure(const data::Example& example, const MultihopOptions& options) {
  const auto long_breakpoints = narrowed(numbers(example, "long_paragraph_breakpoints"));
  const auto paragraphs = narrowed(numbers(example, "long_paragraph_ids"));
  const auto sentences = narrowed(numbers(example, "long_sentence_ids"));
  const auto global_breakpoints = narrowed(numbers(example, "global_paragraph_breakpoints"));
  sparse::MultihopArrays arrays;
  arrays.long_paragraph_breakpoints = long_breakpoints;
  arrays.long_paragraph_ids = paragraphs;
  arrays.long_sentence_ids = sentences;
  arrays.global_paragraph_breakpoints = global_breakpoints;
  arrays.ignore_hard_g2l = options.ignore_hard_g2l;
  arrays.linked_ids = options.linked_ids;
  arrays.flat_sequence = options.flat_sequence;
  return sparse::multihop_structure(arrays);
}

void append_example(EncoderInput& input, const data::LoadedExample& example) {
  append(input.token_ids, numbers(example.features, "long_token_ids"));
  append(input.segment_ids, numbers(example.features, "long_token_type_ids"));
  append(input.global_token_ids, numbers(example.features, "global_token_ids"));
  append(input.global_segment_ids, numbers(example.features, "global_token_type_ids"));
  input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
  input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
  input.sample_ordinals.push_back(example.sample_ordinal);
}

}  // namespace etc::feed

#include "tasks/wikihop/feed.h"

#include "tasks/feed/multihop.h"

namespace etc::wikihop {

namespace {

using feed::numbers;

sparse::AttentionStructure structure_of(const data::Example& example, const FeedOptions& options) {
  std::vector<std::int32_t> exempt;  // [G]
  for (const std::int64_t type : numbers(example, "global_token_type_ids")) {
    exempt.push_back((options.candidate_ignore_hard_g2l && type == kCandidateGlobalType) ||
                     (options.query_ignore_hard_g2l && type == kQueryGlobalType));
  }
  std::vector<std::int32_t> linked;  // [L]
  if (options.enable_l2g_linking) linked = feed::narrowed(numbers(example, "l2g_linked_ids"));
  return feed::multihop_structure(example, {exempt, linked, options.flat_sequence});
}

}  // namespace

std::int64_t num_candidates(const data::Example& example) {
  return feed::number(example, "num_candidates");
}

std::int64_t label_id(const data::Example& example) {
  return feed::number(example, "label_id");
}

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const feed::Sizes sizes = feed::check_multihop(example, examination, model);
  examination.same_length("l2g_linked_ids", sizes.length);
  const std::int64_t candidates = num_candidates(example);
  if (candidates < 1 || candidates > sizes.globals) {
    examination.reject("num_candidates", "expected 1 … G={} candidates, the first global tokens, got {}", sizes.globals,
                       candidates);
  }
  const feed::Numbers& types = numbers(example, "global_token_type_ids");
  for (std::int64_t g = 0; g < sizes.globals; ++g) {
    const bool is_candidate = types[static_cast<std::size_t>(g)] == kCandidateGlobalType;
    if (is_candidate != (g < candidates)) {
      examination.reject("global_token_type_ids",
                         "expected type {} at the first C={} positions only, got {} at position {}",
                         kCandidateGlobalType, candidates, types[static_cast<std::size_t>(g)], g);
    }
  }
  examination.in_range("l2g_linked_ids", -1, candidates);
  examination.number_in_range("label_id", -1, candidates);
  const std::int64_t texts = std::ssize(feed::texts(example, "candidates"));
  if (texts != candidates) examination.reject("candidates", "expected C={} strings, got {}", candidates, texts);
}

EncoderInput feed(Examples examples, const EncoderConfig& model, const FeedOptions& options, const std::string& where) {
  EncoderInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const data::LoadedExample& loaded : examples) {
    check_example(loaded.features, model, where);
    feed::append_example(input, loaded);
    structures.push_back(structure_of(loaded.features, options));
  }
  input.labels = model.labels(std::move(structures), global_attention(options.global_attention));
  return input;
}

}  // namespace etc::wikihop

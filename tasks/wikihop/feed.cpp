#include "tasks/wikihop/feed.h"

#include <array>

#include "etc_core/base/error.h"
#include "sparse/labels/builders.h"

namespace etc::wikihop {

namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::array kLongFeatures = {"long_token_ids",     "long_token_type_ids",        "long_sentence_ids",
                                      "long_paragraph_ids", "long_paragraph_breakpoints", "l2g_linked_ids"};
constexpr std::array kGlobalFeatures = {"global_token_ids", "global_token_type_ids", "global_paragraph_breakpoints"};

template <typename T>
const T& get(const data::Example& example, const char* name) {
  const auto found = example.find(name);
  if (found == example.end()) fail("feed", "feature {} is missing", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail("feed", "feature {}: unexpected kind", name);
  return *value;
}

std::vector<std::int32_t> narrowed(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

void append(std::vector<std::int32_t>& all, const Numbers& numbers) {
  all.insert(all.end(), numbers.begin(), numbers.end());
}

// One example under examination: every failure names file, example and feature.
struct Checker {
  const data::Example& example;
  const std::string& where;

  template <typename... Args>
  [[noreturn]] void reject(const char* feature, fmt::format_string<Args...> format, Args&&... args) const {
    fail("feed", "{}: example {}: {}: {} (the file is damaged or not WikiHop; run `etc prepare` again)", where,
         get<std::string>(example, "id"), feature, fmt::format(format, std::forward<Args>(args)...));
  }
  void same_length(const char* feature, std::size_t expected) const {
    const std::size_t got = get<Numbers>(example, feature).size();
    if (got != expected) reject(feature, "expected {} numbers like the others of its side, got {}", expected, got);
  }
  void in_range(const char* feature, std::int64_t least, std::int64_t limit) const {
    const Numbers& numbers = get<Numbers>(example, feature);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < least || numbers[i] >= limit) {
        reject(feature, "expected {} … {} at position {}, got {}", least, limit - 1, i, numbers[i]);
      }
    }
  }
  void ends_with_one(const char* feature) const {
    if (get<Numbers>(example, feature).back() != 1) reject(feature, "expected 1 at the last position, got 0");
  }
};

sparse::AttentionStructure structure_of(const data::Example& example, const FeedOptions& options) {
  const auto long_breakpoints = narrowed(get<Numbers>(example, "long_paragraph_breakpoints"));
  const auto paragraphs = narrowed(get<Numbers>(example, "long_paragraph_ids"));
  const auto sentences = narrowed(get<Numbers>(example, "long_sentence_ids"));
  const auto global_breakpoints = narrowed(get<Numbers>(example, "global_paragraph_breakpoints"));
  const auto linked = narrowed(get<Numbers>(example, "l2g_linked_ids"));
  std::vector<std::int32_t> exempt;  // [G]
  for (const std::int64_t type : get<Numbers>(example, "global_token_type_ids")) {
    exempt.push_back((options.candidate_ignore_hard_g2l && type == kCandidateGlobalType) ||
                     (options.query_ignore_hard_g2l && type == kQueryGlobalType));
  }
  sparse::MultihopArrays arrays;
  arrays.long_paragraph_breakpoints = long_breakpoints;
  arrays.long_paragraph_ids = paragraphs;
  arrays.long_sentence_ids = sentences;
  arrays.global_paragraph_breakpoints = global_breakpoints;
  arrays.ignore_hard_g2l = exempt;
  if (options.enable_l2g_linking) arrays.linked_ids = linked;
  arrays.flat_sequence = options.flat_sequence;
  return sparse::multihop_structure(arrays);
}

}  // namespace

std::int64_t num_candidates(const data::Example& example) {
  return get<std::int64_t>(example, "num_candidates");
}

std::int64_t label_id(const data::Example& example) {
  return get<std::int64_t>(example, "label_id");
}

void check_example(const data::Example& example, const EtcConfig& model, const std::string& where) {
  const Checker check{example, where};
  const std::size_t length = get<Numbers>(example, kLongFeatures[0]).size();
  const std::size_t globals = get<Numbers>(example, kGlobalFeatures[0]).size();
  if (length == 0) check.reject(kLongFeatures[0], "expected at least one token, got none");
  if (globals == 0) check.reject(kGlobalFeatures[0], "expected at least one token, got none");
  for (const char* feature : kLongFeatures) check.same_length(feature, length);
  for (const char* feature : kGlobalFeatures) check.same_length(feature, globals);
  const auto n_g = static_cast<std::int64_t>(globals);
  check.in_range("long_token_ids", 0, model.vocab_size);
  check.in_range("global_token_ids", 0, model.vocab_size);
  check.in_range("long_sentence_ids", -1, n_g);
  check.in_range("long_paragraph_ids", -1, n_g);
  check.in_range("long_paragraph_breakpoints", 0, 2);
  check.in_range("global_paragraph_breakpoints", 0, 2);
  check.ends_with_one("long_paragraph_breakpoints");
  check.ends_with_one("global_paragraph_breakpoints");

  const std::int64_t candidates = num_candidates(example);
  if (candidates < 1 || candidates > n_g) {
    check.reject("num_candidates", "expected 1 … G={} candidates, the first global tokens, got {}", n_g, candidates);
  }
  const Numbers& types = get<Numbers>(example, "global_token_type_ids");
  for (std::int64_t g = 0; g < n_g; ++g) {
    const bool is_candidate = types[static_cast<std::size_t>(g)] == kCandidateGlobalType;
    if (is_candidate != (g < candidates)) {
      check.reject("global_token_type_ids", "expected type {} at the first C={} positions only, got {} at position {}",
                   kCandidateGlobalType, candidates, types[static_cast<std::size_t>(g)], g);
    }
  }
  check.in_range("l2g_linked_ids", -1, candidates);
  if (label_id(example) < -1 || label_id(example) >= candidates) {
    check.reject("label_id", "expected -1 … {}, got {}", candidates - 1, label_id(example));
  }
  const std::size_t texts = get<std::vector<std::string>>(example, "candidates").size();
  if (texts != static_cast<std::size_t>(candidates)) {
    check.reject("candidates", "expected C={} strings, got {}", candidates, texts);
  }
}

EtcInput feed(Examples examples, const EtcConfig& model, const FeedOptions& options, const std::string& where) {
  EtcInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const data::LoadedExample& loaded : examples) {
    const data::Example& example = loaded.features;
    check_example(example, model, where);
    append(input.token_ids, get<Numbers>(example, "long_token_ids"));
    append(input.segment_ids, get<Numbers>(example, "long_token_type_ids"));
    append(input.global_token_ids, get<Numbers>(example, "global_token_ids"));
    append(input.global_segment_ids, get<Numbers>(example, "global_token_type_ids"));
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
    input.sample_ordinals.push_back(loaded.sample_ordinal);
    structures.push_back(structure_of(example, options));
  }
  input.labels = sparse::build_labels(structures, {model.local_radius, model.relative_pos_max_distance,
                                                   model.use_hard_g2l_mask, model.use_hard_l2g_mask});
  return input;
}

}  // namespace etc::wikihop

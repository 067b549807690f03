#include "tasks/pretrain/feed.h"

#include <numeric>

#include "etc_core/base/error.h"
#include "tasks/feed/batch.h"
#include "tasks/feed/features.h"
#include "tasks/pretrain/schema.h"

namespace etc::pretrain {

using feed::Numbers;
using feed::numbers;

namespace {

constexpr std::int32_t kSentenceId = 1;  // token id of a sentence's global token

void check_increasing(const feed::Examination& examination, const data::Example& example, const char* feature) {
  const Numbers& all = numbers(example, feature);
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i] <= all[i - 1]) {
      examination.reject(feature, "expected strictly increasing, got {} after {} at position {}", all[i], all[i - 1],
                         i);
    }
  }
}

void check_sentences(const feed::Examination& examination, const data::Example& example, std::int64_t length) {
  const Numbers& lengths = numbers(example, "sentence_lengths");
  examination.in_range("sentence_lengths", 1, length);
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (!lengths.empty() && sum != length - 1) {
    examination.reject("sentence_lengths", "expected a sum of {}, one less than the tokens, got {}", length - 1, sum);
  }
}

// Adds the examples of a batch to its input.
class Feeder {
 public:
  Feeder(const EncoderConfig& model, const Options& options, const Pieces& pieces)
      : model_(model), options_(options), pieces_(pieces), builder_(model) {}

  void add_text(const data::LoadedExample& loaded, const Masks& masks);
  void add_sentence(const data::LoadedExample& loaded, std::int64_t sentence);
  EncoderInput finish(bool two_segments) {
    EncoderInput input = builder_.finish(true);
    if (!two_segments) input.segment_ids.clear();
    return input;
  }

 private:
  // Appends `count` positions, starting at `first`.
  void count_from(std::vector<std::int32_t>& positions, std::int64_t first, std::int64_t count) const {
    if (model_.max_absolute_position_embeddings == 0) return;
    for (std::int64_t i = 0; i < count; ++i) positions.push_back(static_cast<std::int32_t>(first + i));
  }
  static sparse::AttentionStructure structure(const std::vector<std::int32_t>& sentence_ids, std::int64_t globals) {
    return sparse::structure_from_example_ids(std::vector<std::int32_t>(sentence_ids.size(), 1),
                                              std::vector<std::int32_t>(static_cast<std::size_t>(globals), 1),
                                              sentence_ids);
  }

  const EncoderConfig& model_;
  const Options& options_;
  const Pieces& pieces_;
  feed::BatchBuilder builder_;
};

// The text as the model sees it: masked pieces replaced, chosen sentences hidden.
void Feeder::add_text(const data::LoadedExample& loaded, const Masks& masks) {
  const data::Example& example = loaded.features;
  EncoderInput& input = builder_.input();
  const std::size_t base = input.token_ids.size(), global_base = input.global_token_ids.size();
  const Numbers& ids = numbers(example, "long_token_ids");
  const std::int64_t length = std::ssize(ids), sentences = std::ssize(numbers(example, "sentence_lengths"));
  feed::append(input.token_ids, ids);
  for (std::size_t i = 0; i < masks.positions.size(); ++i) {
    input.token_ids[base + static_cast<std::size_t>(masks.positions[i])] =
        static_cast<std::int32_t>(masks.input_ids[i]);
  }
  const std::int64_t first = feed::number(example, "first_segment_length");
  for (std::int64_t i = 0; i < length; ++i) input.segment_ids.push_back(i < first ? 0 : 1);

  input.global_token_ids.resize(global_base + static_cast<std::size_t>(sentences), kSentenceId);
  const std::vector<std::int64_t> begins = sentence_begins(example);
  std::vector<std::int32_t> sentence_ids(static_cast<std::size_t>(length), -1);
  for (std::int64_t s = 0; s < sentences; ++s) {
    std::fill(sentence_ids.begin() + begins[static_cast<std::size_t>(s)],
              sentence_ids.begin() + begins[static_cast<std::size_t>(s) + 1], static_cast<std::int32_t>(s));
  }
  for (const std::int64_t s : masks.cpc_sentences) {
    if (!options_.cpc_mask_sentences) break;
    const auto at = static_cast<std::size_t>(s);
    const auto begin = input.token_ids.begin() + static_cast<std::ptrdiff_t>(base);
    std::fill(begin + begins[at], begin + begins[at + 1], static_cast<std::int32_t>(pieces_.mask_id));
    input.global_token_ids[global_base + at] = static_cast<std::int32_t>(options_.cpc_mask_global_id);
  }
  count_from(input.position_ids, 0, length);
  count_from(input.global_position_ids, 0, model_.has_global_tokens() ? sentences : 0);
  builder_.end_example(structure(sentence_ids, sentences), loaded.sample_ordinal);
}

// Adds one sentence as a separate example, which attends only to itself.
void Feeder::add_sentence(const data::LoadedExample& loaded, std::int64_t sentence) {
  // Dropout keys that no sample uses: the samples' keys are far below 2^60 (data/loader).
  constexpr std::int64_t kBesideSamples = std::int64_t{1} << 60, kSentences = std::int64_t{1} << 16;
  const data::Example& example = loaded.features;
  const std::vector<std::int64_t> begins = sentence_begins(example);
  const Numbers& ids = numbers(example, "long_token_ids");
  const std::int64_t begin = begins[static_cast<std::size_t>(sentence)];
  const std::int64_t length = begins[static_cast<std::size_t>(sentence) + 1] - begin;
  EncoderInput& input = builder_.input();
  for (std::int64_t i = 0; i < length; ++i) {
    input.token_ids.push_back(static_cast<std::int32_t>(ids[static_cast<std::size_t>(begin + i)]));
    input.segment_ids.push_back(0);
  }
  input.global_token_ids.push_back(kSentenceId);
  count_from(input.position_ids, begin, length);
  count_from(input.global_position_ids, sentence, 1);
  builder_.end_example(structure(std::vector<std::int32_t>(static_cast<std::size_t>(length), 0), 1),
                       kBesideSamples + loaded.sample_ordinal * kSentences + sentence);
}

}  // namespace

void check_example(const data::Example& example, const EncoderConfig& model, const Options& options,
                   const std::string& where) {
  const feed::Examination examination(example, where);
  const std::int64_t length = examination.length("long_token_ids");
  examination.token_ids("long_token_ids", model.vocab_size);
  examination.same_length("piece_kinds", length);
  examination.in_range("piece_kinds", kContinues, kSpecial + 1);
  examination.number_in_range("first_segment_length", 0, length + 1);
  examination.number_in_range("next_sentence_label", -1, 2);
  examination.in_range("masked_positions", 0, length);
  check_increasing(examination, example, "masked_positions");
  examination.same_length("masked_input_ids", std::ssize(numbers(example, "masked_positions")));
  examination.token_ids("masked_input_ids", model.vocab_size);
  check_sentences(examination, example, length);
  const std::int64_t sentences = std::ssize(numbers(example, "sentence_lengths"));
  examination.in_range("cpc_sentences", 0, sentences);
  check_increasing(examination, example, "cpc_sentences");
  if (options.cpc() && sentences == 0) {
    fail("feed",
         "{}: example {}: task.objective: mlm_cpc needs sentences, and these data have none (prepare them with "
         "--objective mlm_cpc)",
         where, feed::text(example, "id"));
  }
  if (options.nsp() && feed::number(example, "next_sentence_label") < 0) {
    fail("feed",
         "{}: example {}: task.objective: mlm_nsp needs pairs of texts, and these data have none (prepare them with "
         "--objective mlm_nsp, or take task.use_nsp: false)",
         where, feed::text(example, "id"));
  }
  if (sentences > 0 && model.has_global_tokens() && model.vocab_size <= options.cpc_mask_global_id) {
    fail("feed", "task.cpc_mask_global_id: expected an id below vocab_size={}, got {}", model.vocab_size,
         options.cpc_mask_global_id);
  }
}

EncoderInput feed(Examples examples, const Batch& batch, const EncoderConfig& model, const Options& options,
                  const Pieces& pieces) {
  Feeder feeder(model, options, pieces);
  bool two_segments = false;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    feeder.add_text(examples[i], batch.masks[i]);
    const data::Example& example = examples[i].features;
    two_segments |= feed::number(example, "first_segment_length") < std::ssize(numbers(example, "long_token_ids"));
  }
  for (std::size_t i = 0; i < examples.size(); ++i) {
    for (const std::int64_t sentence : batch.masks[i].cpc_sentences) feeder.add_sentence(examples[i], sentence);
  }
  return feeder.finish(two_segments);
}

}  // namespace etc::pretrain

#include "tasks/hotpotqa/feed.h"

#include <limits>

#include "tasks/feed/batch.h"
#include "tasks/feed/multihop.h"

namespace etc::hotpotqa {

namespace {

using feed::numbers;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

sparse::AttentionStructure structure_of(const data::Example& example, bool flat_sequence) {
  std::vector<std::int32_t> exempt;  // [G]
  const feed::Numbers& ids = numbers(example, "global_token_ids");
  for (const std::int64_t id : ids) exempt.push_back(id == ids[0] ? 1 : 0);  // the CLS token's id
  return feed::multihop_structure(example, {exempt, {}, flat_sequence});
}

// Numbered sentences belong to a paragraph.
void require_paragraphs(const data::Example& example, const feed::Examination& examination, const char* feature) {
  const feed::Numbers& sentences = numbers(example, feature);
  const feed::Numbers& paragraphs = numbers(example, "global_paragraph_ids");
  for (std::size_t j = 0; j < sentences.size(); ++j) {
    if (sentences[j] < 0 || paragraphs[j] >= 0) continue;
    examination.reject(feature, "expected -1 at position {}, which belongs to no paragraph, got {}", j, sentences[j]);
  }
}

}  // namespace

void check_example(const data::Example& example, const EncoderConfig& model, const std::string& where) {
  const feed::Examination examination(example, where);
  const feed::Sizes sizes = feed::check_multihop(example, examination, model);
  const std::int64_t long_cls = numbers(example, "long_token_ids")[0];
  const std::int64_t global_cls = numbers(example, "global_token_ids")[0];
  if (long_cls != global_cls) {
    examination.reject("global_token_ids", "expected the CLS token {} like the long side's first, got {}", long_cls,
                       global_cls);
  }
  const bool has_unigrams = !numbers(example, "long_tokens_to_unigrams").empty();  // SentencePiece has none
  if (has_unigrams) examination.same_length("long_tokens_to_unigrams", sizes.length);
  examination.in_range("long_tokens_to_unigrams", -1, kNoLimit);
  for (const char* feature :
       {"global_paragraph_ids", "global_sentence_ids", "global_true_sentence_ids", "supporting_facts"}) {
    examination.same_length(feature, sizes.globals);
  }
  examination.in_range("global_paragraph_ids", -1, std::ssize(feed::texts(example, "paragraph_titles")));
  for (const char* feature : {"global_sentence_ids", "global_true_sentence_ids"}) {
    examination.in_range(feature, -1, kNoLimit);
    require_paragraphs(example, examination, feature);
  }
  examination.in_range("supporting_facts", 0, 2);
  const std::int64_t texts = std::ssize(feed::texts(example, "global_text"));
  if (texts != sizes.globals) examination.reject("global_text", "expected G={} strings, got {}", sizes.globals, texts);
  examination.number_in_range("answer_types", -1, 3);
  // Labels in order; those beyond the sequence are allowed, as in the reference (quirks H2, H3); they have no loss.
  examination.number_in_range("answer_begins", -1, kNoLimit);
  examination.number_in_range("answer_ends", feed::number(example, "answer_begins"), kNoLimit);
  examination.same_length("span_ends", std::ssize(numbers(example, "span_begins")));
  examination.in_range("span_begins", 0, kNoLimit);
  const feed::Numbers& begins = numbers(example, "span_begins");
  const feed::Numbers& ends = numbers(example, "span_ends");
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (ends[i] < begins[i]) {
      examination.reject("span_ends", "expected at least {} at position {}, got {}", begins[i], i, ends[i]);
    }
  }
  examination.same_length("gold_sf_sentences", std::ssize(feed::texts(example, "gold_sf_titles")));
}

EncoderInput feed(Examples examples, const EncoderConfig& model, const FeedOptions& options, const std::string& where) {
  return feed::batch_input(examples, model, options.global_attention,
                           [&](EncoderInput& input, const data::Example& example) {
                             check_example(example, model, where);
                             feed::append_tokens(input, example);
                             return structure_of(example, options.flat_sequence);
                           });
}

}  // namespace etc::hotpotqa

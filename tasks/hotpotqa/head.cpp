#include "tasks/hotpotqa/head.h"

#include <algorithm>
#include <cmath>

#include "tasks/feed/features.h"
#include "tasks/hotpotqa/features.h"
#include "tasks/span/loss.h"

namespace etc::hotpotqa {

namespace {

constexpr std::int64_t kTypes = 3, kBioClasses = 3, kSpanEnds = 2;

// Binary cross-entropy of the supporting facts, summed over each example's global tokens.
std::vector<double> fact_losses(const LossArguments& args) {
  std::vector<double> sums;                        // [B]
  const float* logits = args.logits[kFactLogits];  // [U, 1]
  float* dlogits = args.dlogits[kFactLogits];      // [U, 1] or null
  for (std::size_t b = 0; b + 1 < args.global_offsets.size(); ++b) {
    const bool labelled = args.labels->types[b] != span::kNoLabel;
    double sum = 0;
    for (std::int64_t j = args.global_offsets[b]; j < args.global_offsets[b + 1]; ++j) {
      const double x = logits[j], y = args.labels->facts[static_cast<std::size_t>(j)];
      // −y·log σ(x) − (1−y)·log(1−σ(x)), written so that the argument of exp() is never positive and cannot overflow.
      if (labelled) sum += std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
      if (dlogits == nullptr) continue;
      dlogits[j] = labelled ? static_cast<float>(args.scales[0] * (1 / (1 + std::exp(-x)) - y)) : 0.0f;
    }
    sums.push_back(sum);
  }
  return sums;
}

double scale_of(const LossArguments& args, std::size_t term) {
  return args.scales.empty() ? 1 : args.scales[term];
}

}  // namespace

Head::Head(const EncoderConfig& model, AnswerEncoding encoding, ParameterSet& parameters)
    : facts_(parameters, "supporting_facts_", 1, model.hidden_size),
      type_(parameters, "answer_type_", kTypes, model.hidden_size),
      answer_(encoding == AnswerEncoding::span
                  ? span::OutputLayer(parameters, "answer_span_", kSpanEnds, model.hidden_size)
                  : span::OutputLayer(parameters, "answer_bio_", kBioClasses, model.hidden_size)) {}

HeadOutput Head::logits(Tape& tape, const EncoderStates& states, const EncoderInput& input) const {
  return {facts_.logits(tape, states.global_states),                                               // [U, 1]
          type_.logits(tape, span::first_rows(tape, states.global_states, input.global_offsets)),  // [B, 3]
          answer_.logits(tape, states.long_states)};                                               // [T, 2] or [T, 3]
}

Labels labels_of(Examples examples, AnswerEncoding encoding) {
  Labels labels;
  for (const auto& loaded : examples) {
    const data::Example& example = loaded.features;
    const std::int64_t type = feed::number(example, "answer_types");
    for (const std::int64_t fact : feed::numbers(example, "supporting_facts")) labels.facts.push_back(fact == 1);
    labels.types.push_back(type);
    if (encoding == AnswerEncoding::span) {
      labels.spans.push_back(feed::number(example, "answer_begins"));
      labels.spans.push_back(feed::number(example, "answer_ends"));
      continue;
    }
    const auto length = std::ssize(feed::numbers(example, "long_token_ids"));
    const auto& begins = feed::numbers(example, "span_begins");
    const auto& ends = feed::numbers(example, "span_ends");
    std::vector<AnswerSpan> spans;
    // Where the answer's label is CLS, occurrences of yes and no in the text are no answers (quirk H3, repaired).
    const bool no_span = feed::number(example, "answer_begins") == 0 && feed::number(example, "answer_ends") == 0;
    for (std::size_t i = 0; i < begins.size() && !no_span; ++i) spans.push_back({{begins[i], ends[i]}, false, false});
    // [L] a class per token; an example kept for prediction only has none anywhere
    const auto bio = type == span::kNoLabel ? feed::Numbers(static_cast<std::size_t>(length), span::kNoLabel)
                                            : bio_labels(spans, length);
    labels.bio.insert(labels.bio.end(), bio.begin(), bio.end());
  }
  return labels;
}

std::vector<std::string> loss_terms(AnswerEncoding encoding) {
  if (encoding == AnswerEncoding::bio) return {"supporting_facts", "answer_type", "answer_bio"};
  return {"supporting_facts", "answer_type", "answer_begin", "answer_end"};
}

std::vector<std::vector<double>> losses(const LossArguments& args) {
  const auto examples = args.labels->types.size();
  std::vector<std::vector<double>> terms = {fact_losses(args)};
  terms.push_back(span::class_losses(
      {args.logits[kTypeLogits], kTypes, args.labels->types, scale_of(args, 1), args.dlogits[kTypeLogits]}));
  if (args.encoding == AnswerEncoding::bio) {
    const auto tokens = span::class_losses(
        {args.logits[kAnswerLogits], kBioClasses, args.labels->bio, scale_of(args, 2), args.dlogits[kAnswerLogits]});
    auto& sums = terms.emplace_back(examples, 0.0);  // [B]
    for (std::size_t b = 0; b < examples; ++b) {
      for (std::int64_t i = args.long_offsets[b]; i < args.long_offsets[b + 1]; ++i) {
        sums[b] += tokens[static_cast<std::size_t>(i)];
      }
    }
    return terms;
  }
  // Both ends have the same denominator, hence one scale.  ends: [B, 2]
  const auto ends = span::position_losses({args.long_offsets, args.logits[kAnswerLogits], kSpanEnds, args.labels->spans,
                                           scale_of(args, 2), args.dlogits[kAnswerLogits]});
  for (std::size_t side = 0; side < 2; ++side) {  // begin, end
    auto& term = terms.emplace_back();            // [B]
    for (std::size_t b = 0; b < examples; ++b) term.push_back(ends[b * 2 + side]);
  }
  return terms;
}

}  // namespace etc::hotpotqa

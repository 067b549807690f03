#include "tasks/hotpotqa/decode.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/hotpotqa/features.h"
#include "tasks/text/json_field.h"
#include "tasks/text/recover_text.h"
#include "tasks/text/special_pieces.h"
#include "tasks/text/top_scores.h"

namespace etc::hotpotqa {

namespace {

using feed::Numbers, feed::numbers;

void sort_best_first(std::vector<ScoredSpan>& spans) {
  std::sort(spans.begin(), spans.end(), [](const ScoredSpan& a, const ScoredSpan& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.tokens.first != b.tokens.first) return a.tokens.first > b.tokens.first;
    return a.tokens.last > b.tokens.last;
  });
}

// The words of a title or sentence from the word of the span's first token to that of its last token. With the
// reference's numbers (quirk H1) the text may be another sentence's, of fewer words: as many as there are.
std::string source_snippet(const data::Example& example, text::TokenSpan span) {
  const auto owner = numbers(example, "long_sentence_ids")[at(span.first)];
  const auto& texts = std::get<std::vector<std::string>>(example.at("global_text"));
  const auto words = text::unigrams(texts[at(owner)]);
  const std::int64_t count = std::ssize(words);
  const std::int64_t begin = std::clamp<std::int64_t>(unigram_of(example, span.first), 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(unigram_of(example, span.last) + 1, begin, count);
  return fmt::format("{}", fmt::join(words.begin() + begin, words.begin() + end, " "));
}

std::string answer_text(const data::Example& example, const data::Tokenizer& tokenizer, text::TokenSpan span) {
  const Numbers& ids = numbers(example, "long_token_ids");
  std::vector<std::string> pieces;
  for (std::int64_t i = span.first; i <= span.last; ++i) {
    pieces.push_back(tokenizer.piece(static_cast<std::int32_t>(ids[at(i)])));
  }
  if (text::is_sentencepiece(tokenizer)) return text::joined_sentencepieces(pieces);
  // The CLS position has no text.
  if (numbers(example, "long_sentence_ids")[at(span.first)] < 0) return "";
  return text::answer_in_words(tokenizer, pieces, source_snippet(example, span));
}

std::vector<bool> predicted_facts(std::span<const float> logits, double threshold) {
  std::vector<bool> facts;
  for (const float z : logits) facts.push_back(1 / (1 + std::exp(-static_cast<double>(z))) >= threshold);
  return facts;
}

std::vector<SupportingFact> named_facts(const std::vector<bool>& facts, const data::Example& example) {
  const Numbers& paragraphs = numbers(example, "global_paragraph_ids");
  const Numbers& sentences = numbers(example, "global_sentence_ids");
  const auto& titles = std::get<std::vector<std::string>>(example.at("paragraph_titles"));
  std::vector<SupportingFact> named;
  for (std::size_t j = 0; j < facts.size() && j < paragraphs.size(); ++j) {
    if (facts[j] && paragraphs[j] >= 0 && sentences[j] >= 0) named.push_back({titles[at(paragraphs[j])], sentences[j]});
  }
  return named;
}

}  // namespace

std::int64_t unigram_of(const data::Example& example, std::int64_t token) {
  const Numbers& unigrams = numbers(example, "long_tokens_to_unigrams");
  return unigrams.empty() ? kNone : unigrams[at(token)];
}

bool SpanFilter::admits(text::TokenSpan span) const {
  const auto in_text = [&](std::int64_t i) {
    const std::int64_t type = long_token_type_ids[at(i)];
    return type == kSentenceType || type == kTitleType;
  };
  const std::int64_t owner = long_sentence_ids[at(span.first)];
  return span.first <= span.last && span.last - span.first < max_length && in_text(span.first) && in_text(span.last) &&
         owner == long_sentence_ids[at(span.last)] && (owner < 0 ? fact_of_none : facts[at(owner)]);
}

std::vector<ScoredSpan> span_candidates(std::span<const float> begin_logits, std::span<const float> end_logits,
                                        std::int64_t top_positions, const SpanFilter& filter) {
  const std::vector<float> begin = text::softmax(begin_logits), end = text::softmax(end_logits);
  const Numbers ends = text::largest(end_logits, top_positions);
  std::vector<ScoredSpan> spans;
  for (const std::int64_t b : text::largest(begin_logits, top_positions)) {
    for (const std::int64_t e : ends) {
      if (filter.admits({b, e})) spans.push_back({{b, e}, static_cast<double>(begin[at(b)]) * end[at(e)]});
    }
  }
  sort_best_first(spans);
  return spans;
}

std::vector<ScoredSpan> bio_candidates(std::span<const float> bio_logits, bool close_last, const SpanFilter& filter) {
  constexpr std::int64_t kClasses = 3, kBegin = 0, kInside = 1;
  const std::int64_t positions = std::ssize(bio_logits) / kClasses;
  std::vector<ScoredSpan> spans;
  std::int64_t first = 0;
  double sum = 0;
  bool open = false;
  const auto close = [&](std::int64_t end) {
    const text::TokenSpan run{first, end - 1};
    if (open && filter.admits(run)) spans.push_back({run, sum / static_cast<double>(end - first)});
    open = false;
  };
  for (std::int64_t i = 0; i < positions; ++i) {
    const auto logits = bio_logits.subspan(at(i * kClasses), kClasses);
    const std::int64_t winner = text::first_largest(logits);
    if (winner != kInside) close(i);
    if (winner != kBegin && winner != kInside) continue;
    if (!open) {
      first = i;
      sum = 0;
      open = true;
    }
    sum += text::softmax(logits)[at(winner)];
  }
  if (close_last) close(positions);
  sort_best_first(spans);
  return spans;
}

Decoded decode(const Logits& logits, const data::Example& example, const data::Tokenizer& tokenizer,
               const DecodeOptions& options, std::int64_t global_capacity) {
  SpanFilter filter;
  filter.long_token_type_ids = numbers(example, "long_token_type_ids");
  filter.long_sentence_ids = numbers(example, "long_sentence_ids");
  filter.facts = predicted_facts(logits.supporting_facts, options.sf_threshold);
  filter.fact_of_none = std::ssize(filter.facts) == global_capacity && filter.facts.back();
  filter.max_length = options.max_answer_length;

  Decoded result;
  result.supporting_facts = named_facts(filter.facts, example);
  const auto type = static_cast<AnswerType>(text::first_largest(logits.answer_type));
  if (type != AnswerType::span) result.answer.text = type == AnswerType::yes ? "yes" : "no";
  if (type != AnswerType::span && options.n_best == 0) return result;
  const std::vector<ScoredSpan> spans = options.encoding == AnswerEncoding::span
                                            ? span_candidates(logits.begin, logits.end, options.top_positions, filter)
                                            : bio_candidates(logits.bio, global_capacity == 0, filter);
  result.candidates = std::ssize(spans);
  const auto answer_of = [&](const ScoredSpan& span) {
    return Answer{answer_text(example, tokenizer, span.tokens), span.tokens, span.score};
  };
  if (type == AnswerType::span && !spans.empty()) result.answer = answer_of(spans[0]);
  for (std::size_t i = 0; i < spans.size() && std::ssize(result.n_best) < options.n_best; ++i) {
    result.n_best.push_back(answer_of(spans[i]));
  }
  return result;
}

PredictionFile::PredictionFile(const std::filesystem::path& target) : output_(target) {
  output_.write("{\"answer\": {");
}

void PredictionFile::add(const std::string& id, const std::string& answer, const std::vector<SupportingFact>& facts) {
  if (!ids_.insert(id).second) fail("predictions", "example id {} occurs twice", id);
  const std::string separator = ids_.size() == 1 ? "\n" : ",\n";
  output_.write(separator + text::one_line(id) + ": " + text::one_line(answer));
  Json list = Json::array();
  for (const SupportingFact& fact : facts) list.push_back({fact.title, fact.sentence});
  facts_ += separator + text::one_line(id) + ": " + text::one_line(list);
}

void PredictionFile::finish() {
  output_.write("\n},\n\"sp\": {" + facts_ + "\n}}\n");
  output_.finish();
}

}  // namespace etc::hotpotqa

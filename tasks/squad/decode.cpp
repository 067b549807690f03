#include "tasks/squad/decode.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "etc_core/base/error.h"
#include "tasks/feed/features.h"
#include "tasks/text/recover_text.h"

namespace etc::squad {

namespace {

void require_finite(std::span<const ops::Ranked> ranked, const data::Example& example) {
  for (const auto& [position, z] : ranked) {  // non-finite values are ranked first
    if (std::isfinite(z)) return;
    fail("predict", "example {}: a logit is {} (the weights may be damaged)", feed::text(example, "id"), z);
  }
}

// exp(z − max)/Σ of the sums of start and end, in double.
void set_probabilities(std::vector<ListedAnswer>& answers) {
  const auto sum_of = [](const ListedAnswer& a) { return a.start_logit + a.end_logit; };
  double most = sum_of(answers.front()), total = 0;
  for (const ListedAnswer& answer : answers) most = std::max(most, sum_of(answer));
  for (ListedAnswer& answer : answers) total += answer.probability = std::exp(sum_of(answer) - most);
  for (ListedAnswer& answer : answers) answer.probability /= total;
}

}  // namespace

void QuestionDecoder::add(const WindowLogits& logits, const data::Example& example) {
  require_finite(logits.starts, example);
  require_finite(logits.ends, example);
  const std::int64_t window = std::ssize(windows_);
  const auto& words = feed::numbers(example, "token_words");
  const auto& max_context = feed::numbers(example, "max_context");
  const auto in_text = [&](std::int64_t position) {
    return position < std::ssize(words) && words[static_cast<std::size_t>(position)] >= 0;
  };
  const Candidate none{window, 0, 0, logits.first_start, logits.first_end};
  if (windows_.empty() || none.sum() < null_.sum()) null_ = none;
  for (const auto& [start, start_logit] : logits.starts) {
    // Only the start must have most context in this window, not the end.
    if (!in_text(start) || max_context[static_cast<std::size_t>(start)] == 0) continue;
    for (const auto& [end, end_logit] : logits.ends) {
      if (!in_text(end) || end < start || end - start + 1 > options_.max_answer_length) continue;
      candidates_.push_back({window, start, end, start_logit, end_logit});
    }
  }
  windows_.push_back({feed::numbers(example, "token_ids"), words, feed::texts(example, "words"),
                      feed::number(example, "first_word"), feed::number(example, "lower_case") != 0});
}

std::vector<QuestionDecoder::Candidate> QuestionDecoder::sorted_candidates() const {
  std::vector<Candidate> sorted = candidates_;
  if (options_.version_2 && !windows_.empty()) sorted.push_back(null_);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate& a, const Candidate& b) { return a.sum() > b.sum(); });
  return sorted;
}

// The final text (dense-transformer 5.5): the part of the original words that the pieces cover.
std::string QuestionDecoder::text_of(const Candidate& candidate) const {
  const WindowText& window = windows_[static_cast<std::size_t>(candidate.window)];
  std::vector<std::string> pieces;
  for (auto i = static_cast<std::size_t>(candidate.start); i <= static_cast<std::size_t>(candidate.end); ++i) {
    pieces.push_back(tokenizer_->piece(static_cast<std::int32_t>(window.ids[i])));
  }
  const std::int64_t first = window.words_of_tokens[static_cast<std::size_t>(candidate.start)] - window.first_word;
  const std::int64_t last = window.words_of_tokens[static_cast<std::size_t>(candidate.end)] - window.first_word;
  std::string words;
  for (std::int64_t w = first; w <= last; ++w) {
    words += (w > first ? " " : "") + window.words[static_cast<std::size_t>(w)];
  }
  return text::answer_in_words(*tokenizer_, pieces, words, window.lower_case);
}

std::pair<std::int64_t, std::int64_t> QuestionDecoder::words_of(const ListedAnswer& answer) const {
  const auto& words = windows_.at(static_cast<std::size_t>(answer.window)).words_of_tokens;
  return {words[static_cast<std::size_t>(answer.start)], words[static_cast<std::size_t>(answer.end)]};
}

std::vector<ListedAnswer> QuestionDecoder::listed() const {
  std::vector<ListedAnswer> answers;
  std::set<std::string> seen;
  const auto add = [&](const Candidate& from, const std::string& text) {
    seen.insert(text);
    answers.push_back({text, from.start_logit, from.end_logit, 0, from.window, from.start, from.end});
  };
  for (const Candidate& candidate : sorted_candidates()) {
    if (std::ssize(answers) >= options_.n_best_size) break;
    const std::string text = candidate.start > 0 ? text_of(candidate) : "";
    if (candidate.start > 0 && seen.contains(text)) continue;
    add(candidate, text);
  }
  if (options_.version_2 && !seen.contains("")) add(null_, "");
  if (answers.empty()) add({}, "empty");
  set_probabilities(answers);
  return answers;
}

DecodedQuestion QuestionDecoder::decode() const {
  DecodedQuestion decoded;
  decoded.n_best = listed();
  decoded.answer = decoded.n_best.front().text;
  if (!options_.version_2) {
    decoded.best_text = decoded.answer;
    return decoded;
  }
  decoded.answer.clear();
  for (const ListedAnswer& entry : decoded.n_best) {
    if (entry.text.empty()) continue;
    decoded.best_text = entry.text;
    decoded.null_odds = null_.sum() - entry.start_logit - entry.end_logit;
    if (*decoded.null_odds <= options_.null_score_diff_threshold) decoded.answer = entry.text;
    break;
  }
  return decoded;
}

}  // namespace etc::squad

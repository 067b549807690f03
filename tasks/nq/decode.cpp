#include "tasks/nq/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/nq/windows.h"
#include "tasks/text/json_field.h"
#include "tasks/text/top_scores.h"

namespace etc::nq {

namespace {

Span span_of(std::int64_t first, std::int64_t last) {
  return {std::min(first, last), std::max(first, last) + 1, -1, -1};
}

Json json_of(const Span& span) {
  return {{"start_token", span.start_token},
          {"end_token", span.end_token},
          {"start_byte", span.start_byte},
          {"end_byte", span.end_byte}};
}

Json json_of(const std::vector<ScoredSpan>& spans) {
  Json list = Json::array();
  for (const ScoredSpan& span : spans) {
    list.push_back({{"start_token", span.start}, {"end_token", span.end}, {"score", span.score}});
  }
  return list;
}

const char* name_of(YesNo yes_no) {
  return yes_no == YesNo::yes ? "yes" : yes_no == YesNo::no ? "no" : "NONE";
}

}  // namespace

void DocumentDecoder::add(const WindowLogits& window) {
  double best_long = 0;
  for (std::size_t c = 0; c < kPositionColumns; ++c) {
    const double zero = window.first[c];
    double best_of_column = -std::numeric_limits<double>::infinity();
    for (const auto& [position, z] : window.largest[c]) {
      if (!std::isfinite(z)) {  // non-finite values are ranked first
        fail("decode", "document {}, window {}: a logit is {} (the weights may be damaged)", id_, windows_, z);
      }
      const double logit = z;
      const double score = options_.score == ScoreKind::quotient ? logit / zero : logit - zero;
      const std::int64_t token = window.token_pos[static_cast<std::size_t>(position)];
      if (token < 0) continue;
      if (!std::isfinite(score) && fault_.empty()) {
        fault_ = fmt::format(
            "score_not_finite: document {}, window {}: logit {} of position {}, {} of position 0 (set "
            "task.answer_score "
            "to difference; the weights may be damaged)",
            id_, windows_, logit, position, zero);
      }
      entries_[c].push_back({score, token});
      best_of_column = std::max(best_of_column, score);
    }
    if (c == kLongStart || c == kLongEnd) best_long += best_of_column;
  }
  if (windows_ == 0 || options_.type_window == TypeWindow::last || best_long > type_score_) {
    std::copy_n(window.type_logits, kAnswerTypes, type_logits_.begin());
    type_score_ = best_long;
  }
  ++windows_;
}

DocumentDecoder::Entry DocumentDecoder::best(const Entries& entries) {
  if (entries.empty()) return {};
  return *std::max_element(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.score, a.token) < std::pair(b.score, b.token);
  });
}

template <typename Wanted>
std::optional<DocumentDecoder::Entry> DocumentDecoder::first_best(const Entries& entries, const Wanted& wanted) {
  std::optional<Entry> found;
  for (const Entry& entry : entries) {
    if (wanted(entry) && (!found || entry.score > found->score)) found = entry;
  }
  return found;
}

template <typename Wanted>
std::optional<DocumentDecoder::Choice> DocumentDecoder::best_pair(const Entries& starts, const Entries& ends,
                                                                  const Wanted& wanted) {
  std::optional<Choice> found;
  for (const Entry& start : starts) {
    if (start.score < 0) continue;
    for (const Entry& end : ends) {
      if (end.score < 0 || start.token > end.token || !wanted(start.token, end.token)) continue;
      if (!found || start.score + end.score > found->start.score + found->end.score) found = Choice{start, end};
    }
  }
  return found;
}

DocumentDecoder::Choice DocumentDecoder::joint_long() const {
  const Entries& ends = entries_[kLongEnd];
  if (ends.empty()) return {};
  const Entry start = best(entries_[kLongStart]);
  const auto end = first_best(ends, [&](const Entry& e) { return e.token >= start.token; });
  return {start, end ? *end : best(ends)};
}

DocumentDecoder::Choice DocumentDecoder::joint_short() const {
  const Entries& ends = entries_[kShortEnd];
  if (ends.empty()) return {};
  const Entry start = best(entries_[kShortStart]);
  const auto end = first_best(ends, [&](const Entry& e) {
    return e.token >= start.token && e.token - start.token < options_.max_short_answer_len;
  });
  return {start, end ? *end : best(ends)};
}

DecodedDocument DocumentDecoder::decode() const {
  DecodedDocument document;
  document.prediction.example_id = id_;
  document.fault = fault_;
  if (!fault_.empty()) {
    document.found = false;
    return document;
  }
  Choice long_choice, short_choice;
  const bool any_empty = std::any_of(entries_.begin(), entries_.end(), [](const Entries& e) { return e.empty(); });
  if (options_.selection == SpanSelection::joint) {
    long_choice = joint_long();
    short_choice = joint_short();
  } else if (any_empty) {
    document.found = false;
  } else {
    long_choice = {best(entries_[kLongStart]), best(entries_[kLongEnd])};
    short_choice = {best(entries_[kShortStart]), best(entries_[kShortEnd])};
  }
  if (options_.selection == SpanSelection::joint_exhaustive && document.found) {
    const auto any = [](std::int64_t, std::int64_t) { return true; };
    long_choice = best_pair(entries_[kLongStart], entries_[kLongEnd], any).value_or(long_choice);
    const Span outer = span_of(long_choice.start.token, long_choice.end.token);
    const auto inside = [&](std::int64_t start, std::int64_t end) {
      return start >= outer.start_token && end < outer.end_token && end - start < options_.max_short_answer_len;
    };
    short_choice = best_pair(entries_[kShortStart], entries_[kShortEnd], inside).value_or(short_choice);
  }
  if (document.found) {
    Prediction& prediction = document.prediction;
    prediction.long_answer = span_of(long_choice.start.token, long_choice.end.token);
    prediction.long_score = long_choice.start.score + long_choice.end.score;
    prediction.short_answers = {span_of(short_choice.start.token, short_choice.end.token)};
    prediction.short_score = short_choice.start.score + short_choice.end.score;
  }
  apply_answer_type(document);
  if (options_.n_best > 0) {
    constexpr std::int64_t kAnyLength = std::numeric_limits<std::int64_t>::max();
    document.long_best = best_spans(entries_[kLongStart], entries_[kLongEnd], kAnyLength);
    document.short_best = best_spans(entries_[kShortStart], entries_[kShortEnd], options_.max_short_answer_len);
  }
  return document;
}

void DocumentDecoder::apply_answer_type(DecodedDocument& document) const {
  if (!options_.consider_answer_type || windows_ == 0) return;
  Prediction& prediction = document.prediction;
  switch (static_cast<AnswerType>(text::first_largest(type_logits_))) {
    case AnswerType::yes:
    case AnswerType::no:
      prediction.short_answers.clear();
      prediction.yes_no = text::first_largest(type_logits_) == 1 ? YesNo::yes : YesNo::no;
      break;
    case AnswerType::long_only:
      document.long_type = true;  // the reference intends to drop the short answer, but keeps it
      break;
    default:
      break;
  }
}

// Pairs of the 50 best starts and ends over all windows.
std::vector<ScoredSpan> DocumentDecoder::best_spans(const Entries& all_starts, const Entries& all_ends,
                                                    std::int64_t longest) const {
  const auto front = [](Entries entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.score > b.score; });
    entries.resize(std::min<std::size_t>(entries.size(), kEntriesPerWindow));
    return entries;
  };
  const Entries starts = front(all_starts), ends = front(all_ends);
  std::vector<ScoredSpan> spans;
  for (const Entry& start : starts) {
    for (const Entry& end : ends) {
      if (start.token > end.token || end.token - start.token >= longest) continue;
      spans.push_back({start.token, end.token + 1, start.score + end.score});
    }
  }
  // Windows overlap, so a span may occur several times: keep the one with the best score.
  std::stable_sort(spans.begin(), spans.end(),
                   [](const ScoredSpan& a, const ScoredSpan& b) { return a.score > b.score; });
  std::vector<ScoredSpan> best;
  for (const ScoredSpan& span : spans) {
    if (std::ssize(best) == options_.n_best) break;
    const auto same = [&](const ScoredSpan& b) { return b.start == span.start && b.end == span.end; };
    if (std::none_of(best.begin(), best.end(), same)) best.push_back(span);
  }
  return best;
}

std::string prediction_line(const DecodedDocument& document) {
  const Prediction& prediction = document.prediction;
  Json shorts = Json::array();
  for (const Span& span : prediction.short_answers) shorts.push_back(json_of(span));
  Json entry = {{"example_id", prediction.example_id},           {"long_answer", json_of(prediction.long_answer)},
                {"long_answer_score", prediction.long_score},    {"short_answers", shorts},
                {"short_answers_score", prediction.short_score}, {"yes_no_answer", name_of(prediction.yes_no)}};
  if (document.long_type) entry["short_answer"] = Json::array();
  return text::one_line(entry);
}

Json n_best_of(const DecodedDocument& document) {
  return {{"long", json_of(document.long_best)}, {"short", json_of(document.short_best)}};
}

}  // namespace etc::nq

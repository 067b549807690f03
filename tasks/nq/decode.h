// Logits of a document's windows → one long and one short answer (task-nq 5).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etc_core/ops/top_k.h"
#include "tasks/nq/metrics.h"

namespace etc::nq {

enum class SpanSelection { joint, disjoint, joint_exhaustive };
// The reference divides a logit by that of position 0 in its window. If the latter is negative, this reverses the order of
// the window's entries. The difference avoids the quirk, but its scores do not equal the reference's.
enum class ScoreKind { quotient, difference };
// The window whose answer type counts: the one read last, as in the reference, or the one with the best long answer.
enum class TypeWindow { last, best_long };

struct DecodeOptions {
  SpanSelection selection = SpanSelection::joint;
  ScoreKind score = ScoreKind::quotient;
  TypeWindow type_window = TypeWindow::last;
  bool consider_answer_type = true;
  std::int64_t max_short_answer_len = 32;  // document tokens
  std::int64_t n_best = 0;                 // spans collected beside the chosen ones
};

// The four predicted positions, in the order of the head's columns.
enum PositionColumn : std::size_t { kShortStart = 0, kShortEnd = 1, kLongStart = 2, kLongEnd = 3 };
inline constexpr std::size_t kPositionColumns = 4;
inline constexpr std::size_t kAnswerTypes = 5;

// The number of largest logits per window and column that can become entries.
inline constexpr std::int64_t kEntriesPerWindow = 50;

// The logits of one window that decoding reads.
struct WindowLogits {
  std::span<const std::int64_t> token_pos;                             // [L] document token, -1: none
  std::array<std::span<const ops::Ranked>, kPositionColumns> largest;  // positions in the order of ops/top_k.h
  std::array<float, kPositionColumns> first{};                         // of position 0
  const float* type_logits = nullptr;                                  // [5]
};

// A span of document tokens [start, end) with the sum of its two scores.
struct ScoredSpan {
  std::int64_t start = 0, end = 0;
  double score = 0;
};

struct DecodedDocument {
  Prediction prediction;
  bool long_type = false;  // the answer type says LONG
  // False: the selection needs an entry but there is none (no text in any window). The reference stops there; here the
  // prediction is "no answer" with scores 0.
  bool found = true;
  std::string fault;  // not empty: a score is not finite, so there is no answer; says which and why
  std::vector<ScoredSpan> long_best, short_best;  // at most n_best each, best first
};

// Collects the windows of one document in reading order.
class DocumentDecoder {
 public:
  DocumentDecoder(std::int64_t example_id, const DecodeOptions& options) : options_(options), id_(example_id) {}

  // Throws Error naming document and window when a logit is not finite. A score that is not, for example because the logit
  // of position 0 is 0, is a fault of the document.
  void add(const WindowLogits& window);
  DecodedDocument decode() const;
  std::int64_t example_id() const { return id_; }

 private:
  // One of the 50 largest logits of a window.
  struct Entry {
    double score = 0;
    std::int64_t token = 0;
  };
  using Entries = std::vector<Entry>;
  struct Choice {
    Entry start, end;
  };

  static Entry best(const Entries& entries);
  // The entry with the largest score among those for which `wanted` holds, the first of equals; nullopt: none.
  template <typename Wanted>
  static std::optional<Entry> first_best(const Entries& entries, const Wanted& wanted);
  // The pair with the largest sum among those for which `wanted` holds, the first of equals; nullopt: none.
  template <typename Wanted>
  static std::optional<Choice> best_pair(const Entries& starts, const Entries& ends, const Wanted& wanted);

  Choice joint_long() const;
  Choice joint_short() const;
  std::vector<ScoredSpan> best_spans(const Entries& starts, const Entries& ends, std::int64_t longest) const;
  void apply_answer_type(DecodedDocument& document) const;

  DecodeOptions options_;
  std::int64_t id_;
  std::int64_t windows_ = 0;
  std::string fault_;  // the first
  std::array<Entries, kPositionColumns> entries_;
  std::array<float, kAnswerTypes> type_logits_{};
  double type_score_ = 0;  // of the window that gave type_logits_
};

// One entry of the official prediction file, on one line, with the reference's misspelt extra member for LONG.
std::string prediction_line(const DecodedDocument& document);

// {"long": [{"start_token", "end_token", "score"}, …], "short": […]}, best first.
Json n_best_of(const DecodedDocument& document);

}  // namespace etc::nq

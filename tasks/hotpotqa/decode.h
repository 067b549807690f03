// From logits to answers and supporting facts, and the prediction file (task-hotpotqa 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text/tokenizer.h"
#include "tasks/hotpotqa/metrics.h"
#include "tasks/output.h"
#include "tasks/text/offset_text.h"

namespace etc::hotpotqa {

// Converts an index stored in features to a container's index type.
constexpr std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// The unigram of a long token within its title or sentence; kNone where it has none, as with SentencePiece.
std::int64_t unigram_of(const data::Example& example, std::int64_t token);

enum class AnswerEncoding { span, bio };

struct DecodeOptions {
  AnswerEncoding encoding = AnswerEncoding::span;
  double sf_threshold = 0.5;
  std::int64_t max_answer_length = 30;  // long tokens
  std::int64_t top_positions = 50;      // begins and ends that are paired
  std::int64_t n_best = 0;              // answers listed beside the best
};

// Logits of one example at its counted positions: n_l long and n_g global ones.
struct Logits {
  std::span<const float> begin, end;        // [n_l] each; span encoding
  std::span<const float> bio;               // [n_l, 3] begin, inside, outside; BIO encoding
  std::span<const float> supporting_facts;  // [n_g]
  std::span<const float> answer_type;       // [3] span, yes, no
};

// Decides which spans may be answers.
struct SpanFilter {
  std::span<const std::int64_t> long_token_type_ids, long_sentence_ids;  // [n_l]
  std::vector<bool> facts;    // [n_g]: predicted supporting facts, titles and paragraphs among them
  bool fact_of_none = false;  // the fact value of positions that belong to no global token (CLS; quirk H4)
  std::int64_t max_length = 30;

  // Both ends in sentences or titles, in the same one, in a predicted fact, in order and not too long.
  bool admits(text::TokenSpan span) const;
};

struct ScoredSpan {
  text::TokenSpan tokens;
  double score = 0;
};

// All admitted pairs of the best begins and ends, score = P(begin)·P(end); best first: by score, then begin, then end,
// each descending.
std::vector<ScoredSpan> span_candidates(std::span<const float> begin_logits, std::span<const float> end_logits,
                                        std::int64_t top_positions, const SpanFilter& filter);

// All admitted runs of begin and inside classes, in the same order; a run may also begin with inside. score = mean of the
// winning probabilities. A run that is open at the end is lost (quirk H11) unless close_last is set.
std::vector<ScoredSpan> bio_candidates(std::span<const float> bio_logits, bool close_last, const SpanFilter& filter);

struct Answer {
  std::string text;                       // "" where nothing is admitted
  std::optional<text::TokenSpan> tokens;  // none for yes, no and ""
  double score = 0;                       // of the span
};

struct Decoded {
  Answer answer;
  std::vector<Answer> n_best;  // best spans whatever the answer type, at most DecodeOptions::n_best
  std::int64_t candidates = 0;
  std::vector<SupportingFact> supporting_facts;
};

// example: features of hotpotqa::schema(), or of its padded form where padding counts. global_capacity: G to reproduce the
// reference's quirks H4 and H11, which read the last of G global slots; 0: without them.
// Cost: O(n_l log top_positions + top_positions²).
Decoded decode(const Logits& logits, const data::Example& example, const data::Tokenizer& tokenizer,
               const DecodeOptions& options, std::int64_t global_capacity = 0);

// {"answer": {id: text}, "sp": {id: [[title, sentence number], …]}}. Answers are written immediately; supporting facts are
// held in memory until the end, about 100 bytes per record.
class PredictionFile {
 public:
  explicit PredictionFile(const std::filesystem::path& target);  // "-": standard output
  // Throws Error on a repeated id.
  void add(const std::string& id, const std::string& answer, const std::vector<SupportingFact>& facts);
  bool has(const std::string& id) const { return ids_.contains(id); }
  void finish();

 private:
  Output output_;
  std::set<std::string> ids_;
  std::string facts_;
};

}  // namespace etc::hotpotqa

#include "tasks/nq/windows.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/random.h"

namespace etc::nq {

namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kNone = -1;

std::int64_t number(AnswerType type) {
  return static_cast<std::int64_t>(type);
}

// First and last document token with pieces, per candidate; kNone without.
struct Extent {
  std::int64_t first = kNone, last = kNone;
};

std::vector<Extent> extents_of(const Document& document, std::size_t candidates) {
  std::vector<Extent> extents(candidates);
  for (std::size_t i = 0; i < document.ids.size(); ++i) {
    Extent& extent = extents[static_cast<std::size_t>(document.candidate[i])];
    if (extent.first == kNone) extent.first = document.token_pos[i];
    extent.last = document.token_pos[i];
  }
  return extents;
}

// The position of a token's first piece in a window; 0, the CLS token: not in this window.
std::int64_t find_start(const Numbers& token_pos, std::int64_t token) {
  const auto found = std::find(token_pos.begin(), token_pos.end(), token);
  return found == token_pos.end() ? 0 : found - token_pos.begin();
}

// The position of the last piece in a token's first run of pieces; 0: not in this window.
std::int64_t find_end(const Numbers& token_pos, std::int64_t token) {
  if (token < 0) return 0;
  auto found = std::find(token_pos.begin(), token_pos.end(), token);
  if (found == token_pos.end()) return 0;
  while (found + 1 != token_pos.end() && *(found + 1) == token) ++found;
  return found - token_pos.begin();
}

// Whether a window without an answer is kept; the choice does not depend on order or sharding.
bool sampled(const Record& record, std::int64_t window, double rate, const PrepareConfig& config) {
  if (rate >= 1) return true;
  const auto id = static_cast<std::uint64_t>(record.example_id);
  const Philox4 draw = philox(
      {static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32), static_cast<std::uint32_t>(window), 0},
      mix_key(static_cast<std::uint64_t>(config.sample_seed), 0x6e71));
  return draw[0] * 0x1p-32 < rate;
}

class WindowCutter {
 public:
  WindowCutter(const Record& record, const Document& document, const DocumentLabel& label, const PrepareConfig& config)
      : record_(record),
        document_(document),
        label_(label),
        config_(config),
        question_size_(std::min(std::ssize(document.question_ids), config.question_len)),
        extents_(extents_of(document, record.candidates.size())) {}

  Windows cut() {
    const std::int64_t pieces = std::ssize(document_.ids);               // N
    const std::int64_t capacity = config_.seq_len - question_size_ - 3;  // D
    const std::int64_t beyond = std::max<std::int64_t>(pieces - capacity, 0);
    windows_.all = 1 + ceil_div(beyond, config_.stride);
    for (std::int64_t w = 0; w < windows_.all; ++w) {
      const std::int64_t start = w * config_.stride;
      const std::int64_t end = std::min(start + capacity, pieces);
      add_window(w, start, std::max(start, end));
    }
    return std::move(windows_);
  }

 private:
  // The window of pieces [start, end).
  void add_window(std::int64_t index, std::int64_t start, std::int64_t end) {
    const SpecialIds& special = config_.special_ids;
    Numbers token_ids{special.cls};
    token_ids.insert(token_ids.end(), document_.question_ids.begin(), document_.question_ids.begin() + question_size_);
    token_ids.push_back(special.sep);
    Numbers candidate_ids(token_ids.size(), kNone), token_pos(token_ids.size(), kNone);
    // A stride above the capacity may give a window without pieces, which begins after the last piece.
    if (start < end) {
      const auto append = [&](Numbers& to, const Numbers& from) {
        to.insert(to.end(), from.begin() + start, from.begin() + end);
      };
      append(token_ids, document_.ids);
      append(candidate_ids, document_.candidate);
      append(token_pos, document_.token_pos);
    }
    token_ids.push_back(special.sep);
    candidate_ids.push_back(kNone);
    token_pos.push_back(kNone);

    data::Example example;
    AnswerType type = put_labels(token_pos, example);
    if (!wanted(index, type)) return;
    const Numbers sentence_ids =
        config_.fixed_blocks ? put_blocks(std::ssize(token_ids), example) : put_candidates(candidate_ids, example);
    const std::int64_t la_start = std::get<std::int64_t>(example["la_start"]);
    const bool has_long = la_start != 0 || std::get<std::int64_t>(example["la_end"]) != 0;
    example["la_global"] = has_long ? sentence_ids[static_cast<std::size_t>(la_start)] : 0;
    example["id"] = fmt::format("{}#{}", record_.id, index);
    example["unique_ids"] = record_.example_id;
    example["window_index"] = index;
    example["window_start"] = start;
    example["is_last_window"] = std::int64_t{index + 1 == windows_.all};
    example["question_ids"] = document_.question_ids;
    example["token_ids"] = std::move(token_ids);
    example["candidate_ids"] = std::move(candidate_ids);
    example["token_pos"] = std::move(token_pos);
    example["sentence_ids"] = sentence_ids;
    windows_.examples.push_back(std::move(example));
  }

  // For a span cut by the window's border, the end inside the window is labelled. Only the types LONG and SHORT depend on
  // the window: every window of a yes/no document is labelled yes or no.
  AnswerType put_labels(const Numbers& token_pos, data::Example& example) {
    const std::int64_t sa_start = find_start(token_pos, label_.short_start);
    const std::int64_t sa_end = find_end(token_pos, label_.short_end - 1);
    const std::int64_t la_start = find_start(token_pos, label_.long_start);
    const std::int64_t la_end = find_end(token_pos, label_.long_end - 1);
    if (la_start > 0) long_start_seen_ = true;
    if (la_end > 0) long_end_seen_ = true;
    if (sa_start > 0) short_start_seen_ = true;
    if (sa_end > 0) short_end_seen_ = true;
    windows_.label_missing = (label_.long_start >= 0 && !(long_start_seen_ && long_end_seen_)) ||
                             (label_.short_start >= 0 && !(short_start_seen_ && short_end_seen_));
    AnswerType type = label_.type;
    if (type == AnswerType::short_span && sa_start == 0 && sa_end == 0) type = AnswerType::null;
    if (type == AnswerType::long_only && la_start == 0 && la_end == 0) type = AnswerType::null;
    example["sa_start"] = sa_start;
    example["sa_end"] = sa_end;
    example["la_start"] = la_start;
    example["la_end"] = la_end;
    example["answer_type"] = number(type);
    return type;
  }

  bool wanted(std::int64_t index, AnswerType type) const {
    if (type != AnswerType::null || !config_.leaves_windows_out()) return true;
    const double rate = label_.type == AnswerType::null ? config_.unanswerable_rate() : config_.include_unknown_rate;
    return sampled(record_, index, rate, config_);
  }

  // Adds the candidates' global tokens; returns sentence_ids, the global token of each long token.
  Numbers put_candidates(const Numbers& candidate_ids, data::Example& example) {
    const SpecialIds& special = config_.special_ids;
    const auto head = static_cast<std::size_t>(question_size_ + 2);  // CLS, question, SEP: one to one
    Numbers ids{special.cls}, types{config_.global_types.cls}, candidates(head, kNone), starts(head, 0), ends(head, 0);
    ids.resize(head, special.question);
    types.resize(head, config_.global_types.question);
    Numbers sentence_ids(candidate_ids.size());
    for (std::size_t i = 0; i < candidate_ids.size(); ++i) {
      if (i < head) {
        sentence_ids[i] = static_cast<std::int64_t>(i);
        continue;
      }
      const std::int64_t candidate = candidate_ids[i];
      if (candidate != candidate_ids[i - 1]) {
        if (std::ssize(ids) < config_.global_seq_len) {
          // The last SEP also gets a global token; its token id is 0, as for padding.
          const bool real = candidate >= 0;
          const Extent extent = real ? extents_[static_cast<std::size_t>(candidate)] : Extent{0, 0};
          ids.push_back(real ? special.sentence : 0);
          types.push_back(real ? config_.global_types.sentence : 0);
          candidates.push_back(candidate);
          starts.push_back(extent.first);
          ends.push_back(extent.last);
        } else if (candidate >= 0) {
          windows_.global_full = true;
        }
      }
      sentence_ids[i] = std::ssize(ids) - 1;
    }
    example["global_token_ids"] = std::move(ids);
    example["global_type_id"] = std::move(types);
    example["global_candidate_ids"] = std::move(candidates);
    example["global_token_pos_start"] = std::move(starts);
    example["global_token_pos_end"] = std::move(ends);
    return sentence_ids;
  }

  // Blocks beyond global_seq_len are numbered, but have no global token.
  Numbers put_blocks(std::int64_t length, data::Example& example) const {
    const std::int64_t size = config_.fixed_block_size;
    const std::int64_t blocks = std::min(ceil_div(length, size), config_.global_seq_len);
    example["global_token_ids"] = Numbers(static_cast<std::size_t>(blocks), config_.special_ids.sentence);
    Numbers sentence_ids;
    for (std::int64_t i = 0; i < length; ++i) sentence_ids.push_back(i / size);
    return sentence_ids;
  }

  const Record& record_;
  const Document& document_;
  const DocumentLabel& label_;
  const PrepareConfig& config_;
  const std::int64_t question_size_;  // q
  const std::vector<Extent> extents_;
  bool long_start_seen_ = false, long_end_seen_ = false, short_start_seen_ = false, short_end_seen_ = false;
  Windows windows_;
};

}  // namespace

DocumentLabel label_of(const Record& record, const PrepareConfig& config) {
  DocumentLabel label;
  if (record.annotations.empty()) return label;
  const RecordAnnotation& annotation = record.annotations.front();
  const Annotation& answers = annotation.answers;
  const bool reference = config.parity == Parity::reference;
  // What remains beside a span that was left out must not pass for the whole answer.
  if (!reference && (annotation.long_left_out || annotation.short_left_out)) {
    label.type = AnswerType::null;
    return label;
  }
  // For the reference such a short answer is one whose tokens are in no window.
  const bool has_short = !answers.short_answers.empty() || annotation.short_left_out;
  label.long_start = answers.long_answer.start_token;
  label.long_end = answers.long_answer.end_token;
  const bool has_long = label.long_start >= 0 && label.long_end >= 0;
  const auto& shorts = answers.short_answers;
  if (!shorts.empty()) {
    label.short_start = shorts.front().start_token;
    label.short_end = shorts.back().end_token;
    // For an unsorted list, the reference takes a span that ends before it begins.
    if (label.short_start >= label.short_end && !reference) {
      for (const Span& span : shorts) {
        label.short_start = std::min(label.short_start, span.start_token);
        label.short_end = std::max(label.short_end, span.end_token);
      }
    }
  } else if (config.predict_la_when_no_sa && has_long && !has_short) {
    label.short_start = label.long_start;
    label.short_end = label.long_end;
  }
  const bool says_yes_or_no = answers.yes_no != YesNo::none && (annotation.exact_yes_no || !reference);
  label.type = says_yes_or_no ? (answers.yes_no == YesNo::yes ? AnswerType::yes : AnswerType::no)
               : has_short    ? AnswerType::short_span
               : has_long     ? AnswerType::long_only
                              : AnswerType::null;
  return label;
}

Document tokenize(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config) {
  Document document;
  const auto question = tokenizer.encode_ids(record.question);
  document.question_ids.assign(question.begin(), question.end());
  std::vector<std::int32_t> pieces;  // of one token
  for (std::size_t c = 0; c < record.candidates.size(); ++c) {
    const Candidate& candidate = record.candidates[c];
    if (!candidate.top_level) continue;
    for (std::int64_t t = candidate.start; t < candidate.end; ++t) {
      const DocumentToken& token = record.tokens[static_cast<std::size_t>(t)];
      if (token.html) {
        const bool closes = token.text.starts_with("</");
        pieces.assign(1, closes ? config.special_ids.html_close : config.special_ids.html_open);
      } else {
        pieces.clear();
        tokenizer.append_word_ids(token.text, pieces);
      }
      document.ids.insert(document.ids.end(), pieces.begin(), pieces.end());
      document.candidate.resize(document.ids.size(), static_cast<std::int64_t>(c));
      document.token_pos.resize(document.ids.size(), t);
      if (document.ids.size() > kMostPieces) {
        document.too_long = true;
        return document;
      }
    }
  }
  return document;
}

Windows cut_windows(const Record& record, const Document& document, const DocumentLabel& label,
                    const PrepareConfig& config) {
  return WindowCutter(record, document, label, config).cut();
}

data::Example gold_row(const Record& record) {
  Numbers long_start_token, long_end_token, long_start_byte, long_end_byte, yes_no, short_count;
  Numbers short_start_token, short_end_token, short_start_byte, short_end_byte;
  for (const RecordAnnotation& annotation : record.annotations) {
    const Annotation& answers = annotation.answers;
    long_start_token.push_back(answers.long_answer.start_token);
    long_end_token.push_back(answers.long_answer.end_token);
    long_start_byte.push_back(answers.long_answer.start_byte);
    long_end_byte.push_back(answers.long_answer.end_byte);
    yes_no.push_back(static_cast<std::int64_t>(answers.yes_no));
    short_count.push_back(std::ssize(answers.short_answers));
    for (const Span& span : answers.short_answers) {
      short_start_token.push_back(span.start_token);
      short_end_token.push_back(span.end_token);
      short_start_byte.push_back(span.start_byte);
      short_end_byte.push_back(span.end_byte);
    }
  }
  data::Example row;
  row["example_id"] = record.example_id;
  row["long_start_token"] = std::move(long_start_token);
  row["long_end_token"] = std::move(long_end_token);
  row["long_start_byte"] = std::move(long_start_byte);
  row["long_end_byte"] = std::move(long_end_byte);
  row["yes_no"] = std::move(yes_no);
  row["short_count"] = std::move(short_count);
  row["short_start_token"] = std::move(short_start_token);
  row["short_end_token"] = std::move(short_end_token);
  row["short_start_byte"] = std::move(short_start_byte);
  row["short_end_byte"] = std::move(short_end_byte);
  return row;
}

}  // namespace etc::nq

#include "tasks/squad/windows.h"

#include <algorithm>
#include <string>

#include "etc_core/base/error.h"
#include "tasks/squad/schema.h"
#include "tasks/text/answer_text.h"
#include "tasks/text/special_pieces.h"

namespace etc::squad {

namespace {

using Numbers = std::vector<std::int64_t>;

std::string joined(const std::vector<std::string_view>& words, std::int64_t first, std::int64_t last) {
  std::string text;
  for (std::int64_t i = first; i <= last; ++i) {
    if (i > first) text += ' ';
    text += words[static_cast<std::size_t>(i)];
  }
  return text;
}

std::string joined(const std::vector<std::string_view>& words) {
  return joined(words, 0, std::ssize(words) - 1);
}

// Positions of the target in a window; {0, 0} if the window does not contain all of it.
text::TokenSpan position_in(const Window& window, const Target& target, std::int64_t offset) {
  const auto& [first, last] = target.pieces;
  const bool inside = target.answered && first >= window.start && last < window.start + window.length;
  if (!inside) return {0, 0};
  return {first - window.start + offset, last - window.start + offset};
}

// The data shared by the windows of one question.
struct Question {
  Numbers front;  // CLS, question and the separators before the text
  std::int64_t sep = 0;
};

Question question_of(const Record& record, const data::Tokenizer& tokenizer, const PrepareConfig& config,
                     prepare::FaultList& faults) {
  Question question;
  question.sep = text::special_id(tokenizer, text::kSepPiece);
  const auto ids = tokenizer.encode_ids(record.question);
  const auto kept = std::min(std::ssize(ids), static_cast<std::ptrdiff_t>(config.question_len));
  if (kept < std::ssize(ids)) {
    faults.warn_quietly("question.question", "question_truncated",
                        fmt::format("{} pieces, {} are kept", std::ssize(ids), kept));
  }
  question.front.push_back(text::special_id(tokenizer, text::kClsPiece));
  question.front.insert(question.front.end(), ids.begin(), ids.begin() + kept);
  question.front.insert(question.front.end(), static_cast<std::size_t>(text::pair_form(tokenizer).separators),
                        question.sep);
  return question;
}

}  // namespace

std::vector<Window> cut_windows(std::int64_t pieces, std::int64_t most, std::int64_t stride) {
  if (most < 1) fail("prepare", "a window without room for text: expected one piece at least, got {}", most);
  std::vector<Window> windows;
  for (std::int64_t start = 0; start < pieces;) {
    const std::int64_t length = std::min(pieces - start, most);
    windows.push_back({start, length});
    if (start + length == pieces) break;
    start += std::min(length, stride);
  }
  return windows;
}

std::vector<std::int64_t> best_windows(const std::vector<Window>& windows, std::int64_t pieces) {
  Numbers best(static_cast<std::size_t>(pieces), -1);
  std::vector<double> scores(best.size(), 0);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto& [start, length] = windows[w];
    for (std::int64_t i = 0; i < length; ++i) {
      const double score = static_cast<double>(std::min(i, length - 1 - i)) + 0.01 * static_cast<double>(length);
      const auto piece = static_cast<std::size_t>(start + i);
      if (best[piece] >= 0 && score <= scores[piece]) continue;
      best[piece] = static_cast<std::int64_t>(w);
      scores[piece] = score;
    }
  }
  return best;
}

bool find_target(const Record& record, const text::OffsetText& context, const data::Tokenizer& tokenizer,
                 const PrepareConfig& config, prepare::FaultList& faults, Target& target) {
  target = {};
  if (config.version_2 && record.impossible) return true;
  AnswerBytes bytes;
  if (!find_answer(record, config, faults, bytes)) return false;
  const std::vector<std::string_view> words = text::unigrams(record.context);
  const std::int64_t first = context.unigram_of(bytes.first), last = context.unigram_of(bytes.last);
  const std::string& answer = record.answers.front().text;
  // An answer inside the blanks before the first word has no words.
  const std::string there = first < 0 ? "" : joined(words, first, last);
  if (first < 0 || there.find(joined(text::white_space_words(answer))) == std::string::npos) {
    faults.drop("question.answers[0]", "answer_not_found",
                fmt::format("the words at its place are {}, the answer is {}", prepare::quoted(there),
                            prepare::quoted(answer)));
    return false;
  }
  target.answered = true;
  std::vector<std::int32_t> answer_ids;
  tokenizer.append_word_ids(answer, answer_ids);
  target.pieces = context.tightened(context.tokens_of(first, last), answer_ids);
  return true;
}

std::vector<data::Example> window_examples(const Record& record, const text::OffsetText& context,
                                           const data::Tokenizer& tokenizer, const PrepareConfig& config,
                                           const Target* target, prepare::FaultList& faults) {
  const Question question = question_of(record, tokenizer, config, faults);
  const std::int64_t offset = std::ssize(question.front), pieces = std::ssize(context.ids());
  const std::vector<Window> windows = cut_windows(pieces, config.seq_len - offset - 1, config.stride);
  const Numbers best = best_windows(windows, pieces);
  const std::int64_t segment = text::pair_form(tokenizer).second_segment;
  const std::vector<std::string_view> words = text::unigrams(record.context);
  std::vector<data::Example> examples;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto& [start, length] = windows[w];
    Numbers ids = question.front, segments(static_cast<std::size_t>(offset), 0);
    Numbers token_words(static_cast<std::size_t>(offset), -1), max_context(static_cast<std::size_t>(offset), 0);
    for (auto piece = static_cast<std::size_t>(start); piece < static_cast<std::size_t>(start + length); ++piece) {
      ids.push_back(context.ids()[piece]);
      segments.push_back(segment);
      token_words.push_back(context.token_unigrams()[piece]);
      max_context.push_back(best[piece] == static_cast<std::int64_t>(w) ? 1 : 0);
    }
    const std::int64_t first_word = token_words[static_cast<std::size_t>(offset)], last_word = token_words.back();
    ids.push_back(question.sep);
    segments.push_back(segment);
    token_words.push_back(-1);
    max_context.push_back(0);
    const text::TokenSpan place =
        target == nullptr ? text::TokenSpan{kNoTarget, kNoTarget} : position_in(windows[w], *target, offset);
    data::Example& example = examples.emplace_back();
    example["id"] = record.id;
    example["window_index"] = static_cast<std::int64_t>(w);
    example["lower_case"] = std::int64_t{tokenizer.lower_case()};
    example["token_ids"] = std::move(ids);
    example["segment_ids"] = std::move(segments);
    example["token_words"] = std::move(token_words);
    example["max_context"] = std::move(max_context);
    example["first_word"] = first_word;
    example["words"] = std::vector<std::string>(words.begin() + first_word, words.begin() + last_word + 1);
    example["start_position"] = place.first;
    example["end_position"] = place.last;
  }
  return examples;
}

}  // namespace etc::squad

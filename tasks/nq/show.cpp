#include "tasks/nq/show.h"

#include <algorithm>
#include <array>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/nq/head.h"
#include "tasks/nq/top_logits.h"
#include "tasks/text/top_scores.h"

namespace etc::nq {

namespace {

constexpr std::array kTypeNames = {"none", "yes", "no", "long only", "short"};
constexpr std::int64_t kShownTokens = 40;

// Tokens [start, end) of the document without tags, shortened in the middle.
std::string words_of(const Json& record, std::int64_t start, std::int64_t end) {
  std::vector<std::string> words;
  if (const auto tokens = record.find("document_tokens"); tokens != record.end()) {
    for (std::int64_t t = start; t < std::min(end, std::ssize(*tokens)); ++t) {
      const Json& token = (*tokens)[static_cast<std::size_t>(t)];
      if (!token.at("html_token").get<bool>()) words.push_back(token.at("token"));
    }
  } else {
    const std::string text = record.value("document_text", "");
    std::int64_t t = 0;
    for (std::size_t begin = 0; begin <= text.size() && t < end; ++t) {
      const std::size_t stop = std::min(text.find(' ', begin), text.size());
      const std::string word = text.substr(begin, stop - begin);
      if (t >= start && !(word.starts_with('<') && word.ends_with('>'))) words.push_back(word);
      begin = stop + 1;
    }
  }
  std::string result;
  for (std::int64_t i = 0; i < std::ssize(words); ++i) {
    const bool left_out =
        std::ssize(words) > kShownTokens && i >= kShownTokens / 2 && i < std::ssize(words) - kShownTokens / 2;
    if (left_out && i > kShownTokens / 2) continue;
    result += (result.empty() ? "" : " ") + (left_out ? "…" : words[static_cast<std::size_t>(i)]);
  }
  return result;
}

}  // namespace

std::string shown_prediction(const Json& raw_record, const data::Example& example, const HeadOutput& logits,
                             const DecodeOptions& options) {
  DocumentDecoder decoder(feed::number(example, "unique_ids"), options);
  const Var& positions = logits.at(kPositionLogits);
  const TopLogits top(positions, {0, positions.value().rows()});
  WindowLogits window = top.window(0);
  window.token_pos = feed::numbers(example, "token_pos");
  window.type_logits = logits.at(kTypeLogits).value().data();
  decoder.add(window);
  const DecodedDocument decoded = decoder.decode();
  if (!decoded.fault.empty()) fail("decode", "{}", decoded.fault);
  std::string text = fmt::format("{}: {}\n", feed::text(example, "id"), raw_record.value("question_text", ""));
  const auto probabilities = text::softmax({window.type_logits, kAnswerTypes});
  text += "  answer type:";
  for (std::size_t t = 0; t < kAnswerTypes; ++t) {
    text += fmt::format(" {} {:.2f} %{}", kTypeNames[t], 100 * probabilities[t], t + 1 < kAnswerTypes ? "," : "\n");
  }
  const auto add = [&](const char* name, const Span& span, double score) {
    text += fmt::format("  {} [{}, {}), score {:.3g}: {}\n", name, span.start_token, span.end_token, score,
                        words_of(raw_record, span.start_token, span.end_token));
  };
  add("long", decoded.prediction.long_answer, decoded.prediction.long_score);
  for (const Span& span : decoded.prediction.short_answers) add("short", span, decoded.prediction.short_score);
  if (decoded.prediction.yes_no != YesNo::none) {
    text += fmt::format("  answer: {}\n", decoded.prediction.yes_no == YesNo::yes ? "yes" : "no");
  }
  return text;
}

}  // namespace etc::nq

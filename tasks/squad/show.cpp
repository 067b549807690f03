#include "tasks/squad/show.h"

#include <fmt/format.h>

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/span/top_logits.h"

namespace etc::squad {

std::string shown_prediction(const Json& raw_record, const data::Example& example, const HeadOutput& logits,
                             const DecodeOptions& options, std::shared_ptr<const data::Tokenizer> tokenizer) {
  constexpr std::size_t kShown = 3;
  const Var& ends = logits.at(0);  // [L, 2]
  const span::TopLogits top(ends, {0, ends.value().rows()}, options.n_best_size);
  QuestionDecoder decoder(options, std::move(tokenizer));
  decoder.add({top.largest(0, 0), top.largest(0, 1), top.first(0, 0), top.first(0, 1)}, example);
  const DecodedQuestion decoded = decoder.decode();
  const Json question = raw_record.value("question", Json::object());
  std::string text = fmt::format("{}: {}\n  answer: {}\n", feed::text(example, "id"), question.value("question", ""),
                                 decoded.answer.empty() ? "(none)" : decoded.answer);
  for (std::size_t i = 0; i < std::min(kShown, decoded.n_best.size()); ++i) {
    const ListedAnswer& listed = decoded.n_best[i];
    text += fmt::format("  {:6.2f} %  {}\n", 100 * listed.probability, listed.text.empty() ? "(none)" : listed.text);
  }
  for (const Json& answer : question.value("answers", Json::array())) {
    if (answer.is_object()) text += fmt::format("  gold: {}\n", answer.value("text", ""));
  }
  return text;
}

}  // namespace etc::squad

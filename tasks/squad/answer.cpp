#include "tasks/squad/answer.h"

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/span/top_logits.h"

namespace etc::squad {

void QuestionAnswer::add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) {
  const span::TopLogits top(logits.at(0), input.long_offsets, candidates_);
  for (std::size_t b = own.first; b < own.end; ++b) {
    const data::Example& example = examples[b].features;
    id_ = feed::text(example, "id");
    decoder_.add({top.largest(b, 0), top.largest(b, 1), top.first(b, 0), top.first(b, 1)}, example);
  }
}

Json QuestionAnswer::finish() {
  const DecodedQuestion decoded = decoder_.decode();
  Json answer = {{"id", id_}, {"answer", nullptr}, {"score", 0}, {"place", nullptr}};
  if (version_2_) answer["null_odds"] = decoded.null_odds ? Json(*decoded.null_odds) : Json();
  double none = 0;
  for (const ListedAnswer& listed : decoded.n_best) none += listed.start == 0 ? listed.probability : 0;
  answer["answer_type_scores"] = {{"span", 1 - none}, {"none", none}};
  for (const ListedAnswer& listed : decoded.n_best) {
    if (listed.text != decoded.answer) continue;
    answer["score"] = listed.probability;
    if (listed.start == 0) break;  // no answer
    const auto [first, last] = decoder_.words_of(listed);
    answer["answer"] = listed.text;
    answer["place"] = {{"first_word", first}, {"words", last - first + 1}};
    break;
  }
  return answer;
}

}  // namespace etc::squad

#include "tasks/wikihop/answer.h"

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/host_logits.h"
#include "tasks/text/top_scores.h"
#include "tasks/wikihop/decode.h"

namespace etc::wikihop {

void WikihopAnswer::add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) {
  const Tensor z = on_host(logits).at(0).value();  // [U, 1]
  for (std::size_t b = own.first; b < own.end; ++b) {
    const data::Example& example = examples[b].features;
    const feed::Texts& candidates = feed::texts(example, "candidates");
    const std::span<const float> scores(z.data() + input.global_offsets[b], candidates.size());  // [C]
    text::require_finite(scores, feed::text(example, "id"));
    const std::vector<float> probabilities = text::softmax(scores);
    Json all = Json::array();
    for (const std::int64_t c : text::largest(scores, std::ssize(scores))) {
      const auto at = static_cast<std::size_t>(c);
      all.push_back({{"text", normalised_answer(candidates[at])}, {"score", probabilities[at]}});
    }
    const Json best = all.front();
    answer_ = {{"id", feed::text(example, "id")},
               {"answer", best.at("text")},
               {"score", best.at("score")},
               {"candidates", std::move(all)}};
  }
}

}  // namespace etc::wikihop

#include "tasks/openkp/answer.h"

#include "etc_core/base/json.h"
#include "tasks/feed/features.h"
#include "tasks/host_logits.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/head.h"
#include "tasks/text/top_scores.h"

namespace etc::openkp {

void OpenkpAnswer::add(Examples examples, const EncoderInput&, const HeadOutput& computed, ExampleRange own) {
  const HeadOutput logits = on_host(computed);
  std::int64_t first = 0;  // the page's first word in the batch
  for (const data::LoadedExample& before : examples.first(own.first)) first += num_words(before.features);
  for (const data::LoadedExample& loaded : examples.subspan(own.first, own.end - own.first)) {
    const data::Example& page = loaded.features;
    const std::string& url = feed::text(page, "id");
    const std::vector<float> scores = scores_of_page(logits, first, num_words(page));
    first += num_words(page);
    text::require_finite(scores, url);
    const PhraseClasses classes = classes_of(page, scores, scoring_);
    const std::vector<ScoredPhrase> decoded = decode(classes, feed::text(page, "text"), options_);
    const std::vector<double> shares = probabilities(decoded, classes);
    Json phrases = Json::array();
    for (std::size_t i = 0; i < decoded.size(); ++i) {
      phrases.push_back({{"text", decoded[i].text},
                         {"score", shares[i]},
                         {"first_word", decoded[i].first_word},
                         {"words", decoded[i].words}});
    }
    const Json best = phrases.empty() ? Json() : phrases.front().at("text");
    answer_ = {{"id", url}, {"answer", best}, {"keyphrases", std::move(phrases)}};
  }
}

}  // namespace etc::openkp

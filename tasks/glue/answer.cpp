#include "tasks/glue/answer.h"

#include <span>

#include "tasks/feed/features.h"
#include "tasks/glue/predictions.h"
#include "tasks/host_logits.h"
#include "tasks/text/top_scores.h"

namespace etc::glue {

void RowAnswer::add(Examples examples, const EncoderInput&, const HeadOutput& computed, ExampleRange range) {
  const HeadOutput logits = on_host(computed);
  const std::string& id = feed::text(examples[range.first].features, "id");
  const auto outputs = static_cast<std::size_t>(info_.outputs());
  const std::span<const float> own(logits.at(0).value().data() + range.first * outputs, outputs);
  text::require_finite(own, id);
  answer_ = {{"id", id}};
  if (info_.regression()) {
    answer_["answer"] = own[0];
    return;
  }
  answer_["labels"] = ranked_classes(info_, own, info_.outputs());
  answer_["answer"] = answer_["labels"][0]["label"];
  answer_["score"] = answer_["labels"][0]["probability"];
}

}  // namespace etc::glue

#include "tasks/glue/show.h"

#include <fmt/format.h>

#include <span>

#include "data/readers/table_reader.h"
#include "tasks/feed/features.h"
#include "tasks/text/top_scores.h"

namespace etc::glue {

std::string shown_prediction(const data::RecordSlice& raw_record, const data::Example& example,
                             const HeadOutput& logits, const DataSetInfo& info) {
  const std::span<const float> z(logits.at(0).value().data(), static_cast<std::size_t>(info.outputs()));
  std::string text = fmt::format("{}: {}\n", feed::text(example, "id"), data::row_of(raw_record.text));
  if (info.regression()) {
    text += fmt::format("  score: {:.3f}", z[0]);
    if (feed::number(example, "scored") != 0)
      text += fmt::format(", gold {:.3f}", std::get<float>(example.at("score")));
    return text + "\n";
  }
  const std::vector<float> probabilities = text::softmax(z);
  const std::int64_t label = feed::number(example, "label");
  for (const std::int64_t k : text::largest(z, info.outputs())) {
    const auto at = static_cast<std::size_t>(k);
    text += fmt::format("  {:6.2f} %  {}{}\n", 100 * probabilities[at], info.labels[at], k == label ? "  <- gold" : "");
  }
  return text;
}

}  // namespace etc::glue

#include "tasks/wikihop/decode.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::wikihop {

std::int64_t best_candidate(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();  // the first of equals
}

std::string normalised_answer(std::string_view text) {
  return data::lower_case(data::strip(text));
}

PredictionFile::PredictionFile(const std::filesystem::path& target) : output_(target) {}

void PredictionFile::add(const std::string& id, const std::string& answer) {
  if (!ids_.insert(id).second) fail("predictions", "example id {} occurs twice", id);
  const auto quoted = [](const std::string& text) { return json_line(Json(text)); };
  output_.write((ids_.size() == 1 ? "{\n" : ",\n") + quoted(id) + ": " + quoted(answer));
}

void PredictionFile::finish() {
  output_.write(ids_.empty() ? "{}\n" : "\n}\n");
  output_.finish();
}

}  // namespace etc::wikihop

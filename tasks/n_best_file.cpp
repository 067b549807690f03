#include "tasks/n_best_file.h"

#include "etc_core/base/error.h"
#include "tasks/text/json_field.h"

namespace etc {

NBestFile::NBestFile(const PredictionRequest& request) {
  if (request.n_best_output.empty()) return;
  if (request.n_best < 1) fail_usage("predict", "--n-best: expected at least 1, got {}", request.n_best);
  count_ = request.n_best;
  output_.emplace(request.n_best_output);
}

void NBestFile::add(const std::string& id, const Json& answers) {
  if (output_) output_->write(text::one_line({{"id", id}, {"answers", answers}}) + "\n");
}

void NBestFile::finish() {
  if (output_) output_->finish();
}

}  // namespace etc

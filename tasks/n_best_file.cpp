#include "tasks/n_best_file.h"

#include "etc_core/base/json.h"
#include "tasks/text/json_field.h"

namespace etc {

NBestFile::NBestFile(const PredictionRequest& request) {
  if (request.n_best_output.empty()) return;
  constexpr std::int64_t kUsual = 10;
  count_ = request.n_best > 0 ? request.n_best : kUsual;
  output_.emplace(request.n_best_output);
}

void NBestFile::add(const std::string& id, const Json& answers) {
  if (output_) output_->write(text::one_line({{"id", id}, {"answers", answers}}) + "\n");
}

void NBestFile::finish() {
  if (output_) output_->finish();
}

}  // namespace etc

#include "tasks/train/first_weights.h"

#include "etc_core/base/log.h"
#include "tasks/first_batch.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/plan.h"
#include "tasks/train/shared_state.h"

namespace etc {

namespace {

// The first batch of the run, with all of its micro-batches.
data::LoadedBatch whole_first_batch(const RunConfig& config, const std::shared_ptr<const data::DatasetReader>& reader) {
  data::LoaderOptions order = training_order(config);
  order.prefetch_batches = 0;
  data::LoadedBatch batch;
  data::Loader(reader, order).next(batch);
  return batch;
}

}  // namespace

void set_first_weights(Communicator& processes, TaskModel& model, const RunConfig& config,
                       const std::shared_ptr<const data::DatasetReader>& reader, const data::LoadedBatch& batch) {
  const auto* const task = dynamic_cast<const SetsWeightsFromData*>(model.task.get());
  if (task == nullptr) return;
  std::string text;
  if (processes.first()) {
    data::LoadedBatch whole;  // of fewer micro-batches than processes, the first process may have none
    if (batch.micro_batches.empty()) whole = whole_first_batch(config, reader);
    const Examples examples = (batch.micro_batches.empty() ? whole : batch).micro_batches.front();
    const EncoderInput input = model.task->feed(examples, files_text(config.data.train));
    text = task->set_weights(*model.encoder, examples, input, step_options(config.training, 0));
    if (!text.empty()) log::info("{}", text);
  }
  if (any_of(processes, !text.empty())) share_parameters(processes, model.parameters);
}

}  // namespace etc

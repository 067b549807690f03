// One pass of a model over examples: logits, decoded into predictions and metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "etc_core/comm/communicator.h"
#include "tasks/task.h"
#include "tasks/train/model.h"

namespace etc {

// Long and global tokens in memory at once while evaluating; results do not depend on it.
inline constexpr std::int64_t kEvaluationTokens = 16384;

// How an evaluation reads its data: every example once, in source order.
data::LoaderOptions evaluation_order(std::int64_t micro_batch_tokens);

// Tokens of a micro-batch of these data while evaluating: `most`, or fewer (at least 1) if the model reads each example
// together with memory of earlier ones (carried_memory.h), whose tokens count as well.
std::int64_t evaluation_tokens(const EncoderConfig& model, const Json& task_section, const data::DatasetReader& reader,
                               std::int64_t most);

// Long and global tokens of an example, as `schema` counts them.
std::int64_t tokens_of(const data::Example& example, const data::Schema& schema);

// Decodes one micro-batch into `predictions`; `where` names its source in messages.
void predict_examples(TaskModel& model, Examples examples, const std::string& where, Predictions& predictions);

// Micro-batches 0 … count-1 in the first process; any other process has at least those of its share (data::share_of).
struct SharedMicroBatches {
  Communicator& processes;
  std::int64_t count;
  std::function<Examples(std::int64_t number)> examples;
  std::string where;                                // names their source in messages
  std::function<void(Examples)> decoded = nullptr;  // called in the first process after each one, in order
};

// Every process computes its share; micro-batches without examples are passed over. The first process decodes all in
// order, from the same logits as in a single-process run, and is the only one with predictions (elsewhere null).
void predict_together(TaskModel& model, const SharedMicroBatches& all, Predictions* predictions);

// A pass over a whole data set.
struct DatasetPass {
  std::shared_ptr<const data::DatasetReader> reader;
  std::string where;  // names the data in messages
  std::string what;   // the label of its progress display
  std::int64_t micro_batch_tokens = kEvaluationTokens;
  Communicator* processes = &one_process();
  std::int64_t most_examples = 0;  // only the first ones of the data, and no rejected records; 0: all
};

// Decodes the data set in source order (a model with memory starts with empty memory), then its rejected records; false
// when a stop signal interrupted it. Several processes compute shares of the examples; the first one decodes, from the
// same logits in the same order as in a single-process run, and is the only one with predictions (elsewhere null). A
// model with memory is computed by the first process alone.
bool predict_dataset(TaskModel& model, const DatasetPass& pass, Predictions* predictions);

// Requirements of a model on prepared data.
struct DataDemand {
  std::string vocab_sha256;       // empty: any vocabulary
  bool allow_incomplete = false;  // accept data whose raw input could not be read to its end, with a warning
};

// Opens prepared data for a model. Throws Error when they are empty, incomplete or of another vocabulary, UsageError
// when a file is named twice.
std::shared_ptr<const data::DatasetReader> open_dataset(const std::vector<std::string>& files,
                                                        const data::Schema& schema, const DataDemand& demand);

// Names of files for messages: "a.h5" or "a.h5 and 2 more".
std::string files_text(const std::vector<std::string>& files);

}  // namespace etc

// Runs the examples of raw records through a model and returns an answer for each record.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/json_fwd.h"
#include "tasks/task.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model.h"

namespace etc {

// A model and the settings for predicting with it.
struct Running {
  TaskModel& model;
  InferenceTypes types;
  const InferenceFit* fit;          // null: no memory limit
  std::int64_t micro_batch_tokens;  // at most
};

// The end of the micro-batch that begins at example `first`: as many examples as fit, at least one. With a memory
// limit, micro_batch_tokens is reduced to what fits. Throws Error (InferenceFit::refuse) if a single example does not
// fit.
//   where  the source of the examples, for messages: "dev.json"
std::size_t end_of_micro_batch(Running& running, Examples examples, std::size_t first, const std::string& where);

// The answer (Task::start_answer, which must not be null) to all examples of one record.
Json answer_of(Running& running, Examples examples, const std::string& where);

// The same for several records whose examples are computed together; an answer has the same bits as alone.
//   records             [records] the examples of each record, contiguous; none is empty
//   end_of_micro_batch  the end of the micro-batch that begins at this example
// Several threads may call it with one model that has computed before.
std::vector<Json> answers_of(TaskModel& model, Examples examples, std::span<const ExampleRange> records,
                             const std::function<std::size_t(std::size_t first)>& end_of_micro_batch,
                             const std::string& where);

// Throws UsageError unless the task has answers to single records.
void require_answers(const Task& task, const std::string& task_name, const std::string& where);

}  // namespace etc

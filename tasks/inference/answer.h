// The examples of raw records through a model, to an answer each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/json.h"
#include "tasks/task.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model.h"

namespace etc {

// Where and how a model predicts.
struct Running {
  TaskModel& model;
  InferenceTypes types;
  const InferenceFit* fit;          // null: as much memory as it takes
  std::int64_t micro_batch_tokens;  // at most
};

// The end of the micro-batch that begins at example `first`: as many of the examples as fit, at least one. Where memory is
// limited, micro_batch_tokens shrinks to what fits. Throws Error (InferenceFit::refuse) where an example alone does not.
//   where  what the examples come from, for messages: "dev.json"
std::size_t end_of_micro_batch(Running& running, Examples examples, std::size_t first, const std::string& where);

// The answer of Task::start_answer, which must give one, to all examples of one record.
Json answer_of(Running& running, Examples examples, const std::string& where);

// The same of several records whose examples are computed together; an answer has the same bits as alone.
//   records             [records] which of the examples are whose, one behind the other; none is empty
//   end_of_micro_batch  the end of the micro-batch that begins at this example, behind it
// Several threads may call it with one model that has computed before.
std::vector<Json> answers_of(TaskModel& model, Examples examples, std::span<const ExampleRange> records,
                             const std::function<std::size_t(std::size_t first)>& end_of_micro_batch,
                             const std::string& where);

// Throws UsageError unless the task has answers to single records.
void require_answers(const Task& task, const std::string& task_name, const std::string& where);

}  // namespace etc

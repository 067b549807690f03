// A task as tasks/registry.h lists it: its keys, and how it is made and scored.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tasks/task.h"

namespace etc {

// Field::mark of a key of section `task` that does not affect the weights: also an option of `etc eval` and `etc
// predict`.
inline constexpr int kDecoding = 1;

// TaskKind::make of a class that is constructed from these two arguments.
template <typename SomeTask>
std::unique_ptr<Task> made(const Json& section, const EncoderConfig& model) {
  return std::make_unique<SomeTask>(section, model);
}

// Further input for scoring a prediction file, for tasks that use it.
struct ScoreOptions {
  Json keys = Json::object();           // given keys of section `task`; all are keys of the task and marked kDecoding
  std::filesystem::path baseline = {};  // another prediction file to compare with; empty: none
};

// The task as stored in its row of tasks/registry.h.
struct TaskKind {
  Fields keys;  // of section `task`, besides its name
  // Makes the task from the keys of the section. Throws UsageError "config: task.<key>: …".
  std::unique_ptr<Task> (*make)(const Json& section, const EncoderConfig& model);
  // Scores a prediction file in the task's official format against raw files with answers. Returns an object with
  // "metrics" (name → number), counts (integers), and tables as the task's evaluate() describes them. Throws Error
  // naming file, position and id on invalid files.
  Json (*score)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);
  // As `score`, with a file of null odds in addition to the predictions. Null: the task's scores do not use them.
  Json (*score_with_odds)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                          const std::filesystem::path& null_odds) = nullptr;
  // As `score`, with keys of section `task` and a baseline. Null: the task's scores use neither.
  Json (*score_with)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                     const ScoreOptions& options) = nullptr;
  // Whether examples continue those before them in the data set (Task::begins_text): training then uses as many streams
  // as a batch has examples (LoaderOptions::streams).
  bool texts_go_on = false;
  // Keys of section `training` whose defaults differ for this task, the published fine-tuning settings.
  Json training = Json::object();
};

}  // namespace etc

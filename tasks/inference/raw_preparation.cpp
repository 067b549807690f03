#include "tasks/inference/raw_preparation.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"
#include "tasks/registry.h"
#include "tasks/train/kept_files.h"

namespace etc {

namespace {

constexpr const char *kForm = "input_form", *kSplitter = "splitter";

}  // namespace

void require_splitter_of(const std::string& task, const std::string& splitter, const std::string& where) {
  if (splitter.empty() || preparation_kind(task).settings.find(kSplitter) != nullptr) return;
  std::vector<std::string> cutting;
  for (const TaskEntry& entry : task_entries()) {
    if (entry.preparation.settings.find(kSplitter) != nullptr) cutting.push_back(entry.name);
  }
  fail_usage(where,
             "splitter: records of task {} are not cut into sentences: expected none (models of {} take one), got {}",
             task, alternatives(cutting), splitter);
}

std::unique_ptr<prepare::Preparation> make_raw_preparation(const std::string& where, const LoadedModel& loaded,
                                                           const std::filesystem::path& folder,
                                                           const std::string& splitter) {
  if (loaded.vocab.empty()) {
    fail_usage(where, "raw records need --vocab: the model was trained without, so its folder holds no vocabulary");
  }
  const std::string task = task_name(loaded.model->task_section);
  require_splitter_of(task, splitter, where);
  const auto& kind = preparation_kind(task);
  if (kind.inputs == prepare::InputKind::parallel_texts)
    fail_usage(where, "--input: task {} has pairs of sentences: `etc translate` reads their sources", task);
  Json settings = with_overrides(kind, kind.settings.defaults(), loaded.data.preprocess_config, folder.string());
  const std::string cut_by = splitter.empty() ? splitter_in(folder) : splitter;
  if (settings.contains(kSplitter) && !cut_by.empty()) settings[kSplitter] = cut_by;
  if (settings.contains("is_training")) settings["is_training"] = false;  // all records are to be predicted
  if (settings.contains(kForm)) settings[kForm] = "either";
  auto preparation = kind.make(settings, loaded.vocab, prepare::Labels::optional);
  loaded.data.require_vocabulary(preparation->vocab_sha256(), loaded.vocab);
  const Json prepared = preparation->preprocess_config();
  for (const auto& [key, value] : prepared.items()) {
    if (key == "is_training" || key == kForm) continue;
    const Json expected = loaded.data.preprocess_config.value(key, Json());
    if (value != expected) {
      fail(where, "{}: the model's data were prepared with {}, got {}", key, json_line(expected), json_line(value));
    }
  }
  return preparation;
}

}  // namespace etc

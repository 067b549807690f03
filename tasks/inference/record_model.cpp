#include "tasks/inference/record_model.h"

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/inference/document_model.h"
#include "tasks/inference/raw_predictor.h"
#include "tasks/inference/raw_preparation.h"
#include "tasks/registry.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/fed_encoder.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/run_config.h"

namespace etc {

bool answers_records(const std::filesystem::path& folder) {
  const Json document = read_model_config(folder);
  if (!has_task(document)) return false;
  const TaskModel model(*read_encoder_config(folder), document.at("task"));
  return model.task->start_answer() != nullptr;
}

RecordModel::RecordModel(std::string where, const RecordModelOptions& options) : where_(std::move(where)) {
  const std::filesystem::path folder = model_folder(options.model);
  device_ = open_device(options.device).device;
  const std::string named = named_task(read_model_config(folder));  // if none, open_model reports what is expected
  if (!named.empty() && options.use != DocumentUse::none) require_documents(folder, named, options.use, where_);
  loaded_ = open_model(folder, {options.vocab, options.task});
  TaskModel& model = *loaded_.model;
  task_ = task_name(model.task_section);
  require_answers(*model.task, task_, where_);
  preparation_ = make_raw_preparation(where_, loaded_, folder, options.splitter);
  const bool lower_case = loaded_.data.preprocess_config.value("do_lower_case", true);
  tokenizer_ = data::load_tokenizer(loaded_.vocab, {.do_lower_case = lower_case});
  const InferenceTypes types = chosen_types(options.compute, options.scores, device_);
  if (options.memory_limit > 0) fit_.emplace(where_, options.memory_limit, device_, *model.config, types);
  running_.emplace(Running{model, types, fit_ ? &*fit_ : nullptr, kEvaluationTokens});
  load_weights(folder, model);
  model.parameters.to(device_);
  model.encoder->release_kernels(types);
}

std::vector<data::LoadedExample> RecordModel::prepare(const Json& record, const std::string& what) const {
  return prepare_text(json_line(record), what);
}

std::vector<data::LoadedExample> RecordModel::prepare_text(std::string text, const std::string& what) const {
  data::RecordSlice slice;
  slice.text = preparation_->text_of_json(std::move(text), what);
  slice.text.reserve(slice.text.size() + data::kTextPadding);
  slice.stands_alone = true;
  prepare::Converted converted = preparation_->convert_record(slice);
  if (converted.faults.rejected() || converted.faults.dropped()) fail(where_, "{}: {}", what, faults_text(converted));
  if (converted.examples.empty()) fail(where_, "{}: there is no text to read", what);
  std::vector<data::LoadedExample> examples;
  for (data::Example& example : converted.examples) examples.push_back({0, std::ssize(examples), std::move(example)});
  return examples;
}

Json RecordModel::answer(Examples examples, const std::string& what) {
  return answer_of(*running_, examples, what);
}

}  // namespace etc

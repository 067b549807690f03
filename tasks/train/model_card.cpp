#include "tasks/train/model_card.h"

#include <fmt/format.h>

#include "data/dataset_info.h"
#include "etc_core/base/json.h"
#include "etc_core/base/version.h"
#include "tasks/registry.h"

namespace etc {

namespace {

std::string front_matter(const std::string& task, const Metrics& metrics) {
  std::string text = fmt::format("---\nlibrary_name: etc\ntags:\n- etc\n- long-documents\n- {}\n", task);
  if (!metrics.empty()) text += fmt::format("metrics:\n- {}\n", metrics.front().first);
  return text + "---\n";
}

std::int64_t numbers_of(const ParameterSet& parameters) {
  std::int64_t numbers = 0;
  for (const auto& parameter : parameters.all()) numbers += parameter->size();
  return numbers;
}

// A line of the table of data; "" if there are no such data.
std::string data_line(const char* use, const std::shared_ptr<const data::DatasetReader>& reader) {
  if (!reader) return "";
  const data::DatasetInfo& info = reader->info();
  return fmt::format("| {} | {} | {} | `{}` |\n", use, info.split, reader->size(), info.content_sha256);
}

// The commands that use a model. A folder without its vocabulary needs it from elsewhere for raw texts.
std::string usage(const TaskModel& model, const std::string& task, bool has_vocabulary) {
  const std::string vocab = has_vocabulary ? "" : " --vocab VOCABULARY";
  if (model.config->to_json().value("kind", "") == "seq2seq")
    return "```\netc translate --model . --input lines.txt --output -\n```\n";
  std::string text = "```\netc predict --model . --data dev.h5 --output predictions.json\n";
  if (model.task->start_answer() != nullptr) {
    text = fmt::format("```\netc predict --model . --input records.json{} --answers -\n", vocab);
  }
  for (const TaskEntry& entry : task_entries()) {
    if (entry.name != task || entry.documents.make == nullptr) continue;
    text += entry.documents.asks ? fmt::format("etc ask --model .{} --document report.md --question \"…\"\n", vocab)
                                 : fmt::format("etc keyphrases --model .{} report.md\n", vocab);
  }
  if (task_kind(task).texts_go_on) return text + "etc eval --model . --data dev.h5\n```\n";
  return text + fmt::format("etc encode --model . --text texts.jsonl{} --output vectors.npy\n```\n", vocab);
}

}  // namespace

std::string model_card(const RunConfig& config, const TaskModel& model, const RunData& data, std::int64_t step,
                       const Metrics& metrics) {
  const std::string task = task_name(model.task_section);
  const EncoderConfig& encoder = *model.config;
  std::string text = front_matter(task, metrics);
  text += fmt::format(
      "\n# A model of {}\n\nAn encoder of {} layers, {} wide, with {} heads and {} token pieces; residual scores: {}. "
      "{} numbers in all, in "
      "`model.safetensors`.\n",
      task, encoder.num_hidden_layers, encoder.hidden_size, encoder.num_attention_heads, encoder.vocab_size,
      residual_text(encoder), numbers_of(model.parameters));
  text += fmt::format(
      "\nMade by etc {}, step {}, {}, seed {}. `config.json` beside this file holds model, task and preparation; that "
      "of the run's "
      "folder every setting: `etc train --config RUN/config.json --output NEW` trains it again.\n",
      program_version(), step, config.training.optimizer, config.training.seed);
  text += "\n## Data\n\n| use | split | examples | SHA-256 of the content |\n|---|---|---|---|\n";
  text += data_line("training", data.train) + data_line("evaluation", data.eval);
  text += fmt::format("\nVocabulary: SHA-256 `{}`.\n", data.train->info().vocab_sha256);
  if (!metrics.empty()) {
    text += "\n## Metrics on the evaluation data\n\n| metric | value |\n|---|---|\n";
    for (const auto& [name, value] : metrics) text += fmt::format("| {} | {:.6g} |\n", name, value);
  }
  return text + "\n## Use\n\n" + usage(model, task, !config.data.vocab.empty());
}

}  // namespace etc

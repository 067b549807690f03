// etc info: describes a run, a model folder, or a file of data, weights or results.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/h5/array_file.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/grouped.h"
#include "etc_core/base/json.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/analyze/earlier_analysis.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/info_results.h"
#include "tasks/cli/info_text.h"
#include "tasks/cli/length_sweep.h"
#include "tasks/cli/processes.h"
#include "tasks/output.h"
#include "tasks/train/run_directory.h"
#include "tasks/train/run_state.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc info run
  etc info run/best
  etc info etc_config.json
  etc info train.h5
  etc info run/best/model.safetensors
  etc info vectors.npy
  etc info analysis
  etc info tasks/configs/wikihop_base.json --forecast

Known are the folders of runs, models, exported models, other programs' models and analyses, configurations, prediction files and other JSON (*.json),
metrics, reports, n-best answers, predictions of OpenKP and other JSON lines (*.jsonl), weights and the state of a run (*.safetensors), prepared data, hidden states and other arrays (*.h5), NumPy
arrays (*.npy), tables (*.csv) and TensorBoard events.)";

// The part of the model that a tensor belongs to, by its name: our names (etc-core 12), or PyTorch's, with dots between
// the parts.
const char* group_of(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("layer_norm") || has("LayerNorm")) return "layer norms";
  if (has("emb_lookup") || has("embeddings/")) return "embeddings";
  if (has("/relative_")) return "relative tables";
  if (has("_projection/") || has("attention/")) return "attention projections";
  if (has("feed_forward") || has("intermediate/dense") || has("/output/dense")) return "feed-forward";
  return "heads and others";
}

// Sizes by part of the model, in the order of the model.
void print_groups(const std::vector<std::pair<std::string, std::int64_t>>& tensors) {
  std::map<std::string, std::int64_t> sizes;
  std::int64_t total = 0;
  for (const auto& [name, size] : tensors) {
    sizes[group_of(name)] += size;
    total += size;
  }
  print_entry("parameters", grouped(total) + " in " + grouped(static_cast<std::int64_t>(tensors.size())) + " tensors");
  for (const char* group :
       {"embeddings", "attention projections", "relative tables", "feed-forward", "layer norms", "heads and others"}) {
    if (sizes.count(group) != 0) print_entry(std::string("  ") + group, grouped(sizes[group]));
  }
}

void print_config(const EncoderConfig& config) {
  const Json fields = config.to_json();
  for (const auto& [key, value] : fields.items()) print_entry(key, json_line(value));
}

void print_encoder_groups(const EncoderConfig& config) {
  ParameterSet parameters;
  const auto encoder = config.make_encoder(parameters);
  std::optional<Seq2SeqDecoder> decoder;
  if (const auto* const both = dynamic_cast<const Seq2SeqConfig*>(&config)) decoder.emplace(*both, parameters);
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& parameter : parameters.all()) tensors.emplace_back(parameter->name, parameter->size());
  print_groups(tensors);
}

// Each key of a section on its own line; keys of a nested object are prefixed by the object's name.
void print_keys(const std::string& prefix, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && !value.empty()) {
      print_keys(prefix + key + ".", value);
    } else {
      print_entry(prefix + key, value.is_string() ? value.get<std::string>() : json_line(value));
    }
  }
}

void print_section(const std::string& section, const Json& content) {
  print_entry("section " + section, content.is_object() ? "" : json_line(content));
  if (content.is_object()) print_keys("  ", content);
}

// Whether a JSON document is a configuration: ours has sections, a foreign etc_config.json the model's keys.
bool is_configuration(const Json& json) {
  if (!json.is_object()) return false;
  for (const auto& [key, value] : json.items()) {
    // A tokenizer.json has a section of this name, too, with a vocabulary.
    if (key == "model") return !value.is_object() || !value.contains("vocab");
    for (const ModelKind& kind : model_kinds()) {
      if (kind.defaults->fields().find(key) != nullptr) return true;
    }
  }
  return false;
}

// Our own config.json has a section "model"; anything else is read as a foreign etc_config.json.
ModelConfig read_config(const std::filesystem::path& path) {
  const Json json = read_json_file(path);
  const bool own = json.is_object() && json.contains("model");
  ModelConfig config =
      model_config_from_json(own ? json.at("model") : json, "config: " + path.string() + (own ? ": model" : ""),
                             own ? UnknownKeys::refuse : UnknownKeys::warn);
  config->validate();
  warn_of_unread_keys(*config);
  return config;
}

void describe_config(const std::filesystem::path& path) {
  const ModelConfig config = read_config(path);
  print_entry("configuration", path.string());
  print_config(*config);
  print_encoder_groups(*config);
}

std::vector<std::pair<std::string, std::int64_t>> sizes_in(const TensorFileReader& file) {
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, entry.size());
  return tensors;
}

// Prints how far the run was when it wrote this checkpoint.
void print_progress(const std::filesystem::path& checkpoint) {
  const RunProgress progress = read_run_progress(checkpoint);
  print_entry("step", grouped(progress.step));
  print_entry("loss of the last step", fmt::format("{:.6g}", progress.last_loss));
  if (progress.best_step == 0) return;
  std::string text = fmt::format("step {}", progress.best_step);
  for (const auto& [name, value] : progress.best) text += fmt::format(", {} {:.6g}", name, value);
  if (!progress.best_saved) text += " (not yet in checkpoint `best`: the disk refused it)";
  print_entry("best evaluation", text);
}

void describe_run(const std::filesystem::path& folder) {
  print_entry("run", folder.string());
  if (const std::string holder = run_holder(folder); !holder.empty()) print_entry("in use by process", holder);
  const std::filesystem::path last = folder / "last", metrics = folder / "metrics.jsonl";
  if (std::filesystem::exists(last)) {
    print_progress(last);
  } else {
    print_entry("step", "no checkpoint yet");
  }
  for (const char* name : {"last", "best"}) {
    if (std::filesystem::exists(folder / name)) print_entry("checkpoint", (folder / name).string());
  }
  if (std::filesystem::exists(metrics)) describe_json_lines(metrics);
  if (!std::filesystem::exists(folder / "config.json")) return;  // killed before its first step
  const Json config = read_json_file(folder / "config.json");
  if (!config.is_object()) fail((folder / "config.json").string(), "expected an object of sections");
  for (const auto& [section, content] : config.items()) print_section(section, content);
}

// Output of `etc convert --to`, and published checkpoints of the same form: weights beside an etc_config.json.
void describe_export(const std::filesystem::path& folder) {
  const ModelConfig config = read_config(folder / "etc_config.json");
  const auto source = convert::open_tensors(folder);
  const bool safetensors = std::filesystem::exists(folder / "model.safetensors");
  print_entry("exported model", folder.string());
  print_entry("weights", fmt::format("{}, {}", source->where(), safetensors ? "safetensors" : "TensorFlow checkpoint"));
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& [name, tensor] : source->tensors()) tensors.emplace_back(name, tensor.count());
  print_config(*config);
  print_groups(tensors);
}

// A model in a foreign format, such as the BERT that `etc convert --to bert` writes: its own configuration and tensors.
void describe_foreign(const std::filesystem::path& folder, const Json& config) {
  const auto source = convert::open_tensors(folder);
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& [name, tensor] : source->tensors()) tensors.emplace_back(name, tensor.count());
  print_entry("model of another program", folder.string());
  print_entry("weights", source->where());
  print_keys("", config);
  print_groups(tensors);
}

// A folder without a configuration.
void describe_summary(const std::filesystem::path& folder) {
  const std::filesystem::path summary = folder / analyze::kSummaryFile;
  if (std::filesystem::exists(summary)) {
    const Json json = read_json_file(summary);
    if (analyze::is_analysis(json)) return describe_analysis(folder, json);
  }
  fail("etc info",
       "{}: expected the folder of a run, a model, an exported model or an analysis: it has no config.json and no "
       "summary.json of etc analyze",
       folder.string());
}

void describe_folder(const std::filesystem::path& folder) {
  if (is_run_folder(folder)) return describe_run(folder);
  if (!std::filesystem::exists(folder / "config.json") && std::filesystem::exists(folder / "etc_config.json")) {
    return describe_export(folder);
  }
  if (!std::filesystem::exists(folder / "config.json")) return describe_summary(folder);
  if (const Json config = read_json_file(folder / "config.json"); config.is_object() && !config.contains("model")) {
    return describe_foreign(folder, config);
  }
  const Json document = read_model_config(folder);
  const ModelConfig config = read_encoder_config(folder);
  print_entry("model directory", folder.string());
  if (std::filesystem::exists(folder / "state.safetensors")) print_progress(folder);
  for (const auto& [section, content] : document.items()) {
    if (section != "model") print_section(section, content);
  }
  print_config(*config);
  const std::filesystem::path weights = folder / "model.safetensors";
  if (!std::filesystem::exists(weights)) {
    print_entry("weights", "none here; the encoder would have");
    print_encoder_groups(*config);
    return;
  }
  const TensorFileReader file(weights);
  print_entry("weights", weights.string() + ", " +
                             grouped(static_cast<std::int64_t>(std::filesystem::file_size(weights))) + " bytes");
  print_groups(sizes_in(file));
}

void describe_tensors(const std::filesystem::path& path) {
  const TensorFileReader file(path);
  print_entry("tensor file", path.string());
  for (const auto& [key, text] : file.metadata()) print_entry("metadata " + key, text);
  for (const auto& [name, entry] : file.entries()) {
    print("{:<5} {:<18} {}\n", stored_dtype_name(entry.dtype), shape_text(entry.shape), name);
  }
  print_groups(sizes_in(file));
}

void describe_dataset(const std::filesystem::path& path) {
  const data::DatasetInfo info = data::read_dataset_info(path);
  print_entry("data set", path.string());
  print_entry("task", info.task);
  print_entry("split", info.split + (info.labelled ? ", labelled" : ", without labels"));
  print_entry("examples", grouped(info.examples));
  print_entry("records", fmt::format("{} read, {} rejected, {} dropped", grouped(info.input_records),
                                     grouped(info.rejected), grouped(info.dropped)));
  for (const data::MissingPart& part : info.missing) print_entry("INCOMPLETE: " + part.name, part.reason);
  print_entry("longest example", fmt::format("{} long, {} global tokens", info.max_long_len, info.max_global_len));
  print_entry("vocabulary (SHA-256)", info.vocab_sha256);
  print_entry("content (SHA-256)", info.content_sha256);
  print_entry("Unicode", info.unicode_version);
  for (const data::SourceFile& source : info.source_files) {
    print_entry("source " + source.name, fmt::format("{} bytes, SHA-256 {}", grouped(source.bytes), source.sha256));
  }
  print_entry("preparation", json_line(info.preprocess_config));
}

// Prepared data and hidden states have our layout; any other HDF5 file is a list of arrays.
void describe_h5(const std::filesystem::path& path) {
  const auto arrays = data::list_arrays(path);
  const bool data_set = std::any_of(arrays.begin(), arrays.end(),
                                    [](const data::ArrayShape& array) { return array.path.starts_with("examples/"); });
  if (data_set) {
    describe_dataset(path);
  } else {
    print_entry("arrays", path.string());
  }
  for (const auto& [name, shape] : arrays) {
    if (!data_set || name.ends_with("/values")) print_entry("  " + name, shape_text(shape));
  }
}

// Peak memory and time of one call by length, with residual scores as configured.
void print_forecast(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path) && path.extension() != ".json") {
    fail_usage("etc info", "--forecast: expected the folder of a run or a model, or a configuration (*.json), got {}",
               path.string());
  }
  register_cpu_backend();
  SweepOptions sweep;
  sweep.model = read_config(std::filesystem::is_directory(path) ? path / "config.json" : path);
  sweep.lengths = {512, 1024, 2048, 4096, 8192, 16384};
  const std::int64_t positions = sweep.model->max_absolute_position_embeddings;  // 0: any length is valid
  std::erase_if(sweep.lengths, [&](std::int64_t length) { return positions > 0 && length > positions; });
  if (sweep.lengths.empty()) sweep.lengths = {positions};
  sweep.residual = {!sweep.model->use_residual_attention ? "off" : sweep.model->use_running_mean ? "mean" : "sum"};
  const bool pair = dynamic_cast<const Seq2SeqConfig*>(&*sweep.model) != nullptr;
  const char* const what = pair ? "pair of a source and a target of this length each" : "example";
  for (const CallMode mode : {CallMode::infer, CallMode::train}) {
    sweep.mode = mode;
    print("{} of one {}:\n{}", mode == CallMode::infer ? "inference" : "training step", what,
          sweep_table(forecast_lengths(sweep)));
  }
}

void run_info(const std::filesystem::path& path, bool forecast) {
  if (!std::filesystem::exists(path)) fail("etc info", "no such file or folder: {}", path.string());
  if (forecast) return print_forecast(path);
  if (std::filesystem::is_directory(path)) return describe_folder(path);
  const std::string name = path.filename().string(), extension = path.extension().string();
  if (name.find(".tfevents.") != std::string::npos) return describe_events(path);
  if (extension == ".json") {
    const Json json = parse_json(read_file(path), path.string());  // predictions may be large
    if (analyze::is_analysis(json)) return describe_analysis(path, json);
    return is_configuration(json) ? describe_config(path) : describe_json(path, json);
  }
  if (extension == ".jsonl") return describe_json_lines(path);
  if (extension == ".safetensors") return describe_tensors(path);
  if (extension == ".h5" || extension == ".hdf5") return describe_h5(path);
  if (extension == ".npy") return describe_npy(path);
  if (extension == ".csv") return describe_csv(path);
  fail_usage("etc info",
             "expected a folder of a run, a model or an analysis, or a file *.json, *.jsonl, *.safetensors, *.h5, "
             "*.npy, *.csv or *.tfevents.*, got {}",
             path.string());
}

}  // namespace

void add_info_command(Program& program) {
  program.add("info", "describe a run, a model, or a file of data, weights or results", [](const Command& command) {
    auto path = std::make_shared<std::string>();
    auto forecast = std::make_shared<bool>(false);
    command.footer(kExamples);
    command.option("path", *path, "folder of a run or a model, or a file").required();
    command.flag("--forecast", *forecast, "how much memory and time a model or configuration takes at which length");
    command.action([path, forecast] {
      require_one_process("etc info", "it");
      run_info(*path, *forecast);
    });
  });
}

}  // namespace etc::cli

// etc info: what a configuration, a model directory, a file of tensors or a prepared data set holds.
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_encoder.h"
#include "tasks/cli/commands.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc info run/best
  etc info etc_config.json
  etc info train.h5
  etc info run/best/model.safetensors)";

// 1234567 as 1,234,567.
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

void print(const std::string& key, const std::string& value) {
  std::printf("%-34s %s\n", key.c_str(), value.c_str());
}

// Which part of the model a tensor belongs to, by its name of etc-core 12.
const char* group_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("layer_norm") || has("LayerNorm")) return "layer norms";
  if (has("emb_lookup")) return "embeddings";
  if (has("/relative_")) return "relative tables";
  if (has("_projection/")) return "attention projections";
  if (has("feed_forward")) return "feed-forward";
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
  print("parameters", grouped(total) + " in " + grouped(static_cast<std::int64_t>(tensors.size())) + " tensors");
  for (const char* group :
       {"embeddings", "attention projections", "relative tables", "feed-forward", "layer norms", "heads and others"}) {
    if (sizes.count(group) != 0) print(std::string("  ") + group, grouped(sizes[group]));
  }
}

void print_config(const EtcConfig& config) {
  const Json fields = config.to_json();
  for (const auto& [key, value] : fields.items()) print(key, value.dump());
}

void print_encoder_groups(const EtcConfig& config) {
  ParameterSet parameters;
  const EtcEncoder encoder(config, parameters);
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& parameter : parameters.all()) tensors.emplace_back(parameter->name, parameter->size());
  print_groups(tensors);
}

// Our own config.json has a section "model"; anything else is taken for a foreign etc_config.json.
void describe_config(const std::filesystem::path& path) {
  const Json json = read_json_file(path);
  const bool own = json.is_object() && json.contains("model");
  const EtcConfig config =
      etc_config_from_json(own ? json.at("model") : json, "config: " + path.string() + (own ? ": model" : ""), own);
  config.validate();
  print("configuration", path.string());
  print_config(config);
  print_encoder_groups(config);
}

std::vector<std::pair<std::string, std::int64_t>> sizes_in(const TensorFileReader& file) {
  std::vector<std::pair<std::string, std::int64_t>> tensors;
  for (const auto& [name, entry] : file.entries()) tensors.emplace_back(name, entry.size());
  return tensors;
}

void describe_folder(const std::filesystem::path& folder) {
  const Json document = read_model_config(folder);
  const EtcConfig config = read_etc_config(folder);
  print("model directory", folder.string());
  for (const auto& [section, content] : document.items()) {
    if (section != "model") print("section " + section, content.dump());
  }
  print_config(config);
  const std::filesystem::path weights = folder / "model.safetensors";
  if (!std::filesystem::exists(weights)) {
    print("weights", "none here; the encoder would have");
    print_encoder_groups(config);
    return;
  }
  const TensorFileReader file(weights);
  print("weights",
        weights.string() + ", " + grouped(static_cast<std::int64_t>(std::filesystem::file_size(weights))) + " bytes");
  print_groups(sizes_in(file));
}

void describe_tensors(const std::filesystem::path& path) {
  const TensorFileReader file(path);
  print("tensor file", path.string());
  for (const auto& [key, text] : file.metadata()) print("metadata " + key, text);
  for (const auto& [name, entry] : file.entries()) {
    std::printf("%-5s %-18s %s\n", stored_dtype_name(entry.dtype), shape_text(entry.shape).c_str(), name.c_str());
  }
  print_groups(sizes_in(file));
}

void describe_dataset(const std::filesystem::path& path) {
  const data::DatasetInfo info = data::read_dataset_info(path);
  print("data set", path.string());
  print("task", info.task);
  print("split", info.split + (info.labelled ? ", labelled" : ", without labels"));
  print("examples", grouped(info.examples));
  print("records", fmt::format("{} read, {} rejected, {} dropped", grouped(info.input_records), grouped(info.rejected),
                               grouped(info.dropped)));
  print("longest example", fmt::format("{} long, {} global tokens", info.max_long_len, info.max_global_len));
  print("vocabulary (SHA-256)", info.vocab_sha256);
  print("content (SHA-256)", info.content_sha256);
  print("Unicode", info.unicode_version);
  for (const data::SourceFile& source : info.source_files) {
    print("source " + source.name, fmt::format("{} bytes, SHA-256 {}", grouped(source.bytes), source.sha256));
  }
  print("preparation", info.preprocess_config.dump());
}

void run_info(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) fail_usage("etc info", "no such file or folder: {}", path.string());
  if (std::filesystem::is_directory(path)) return describe_folder(path);
  const std::string extension = path.extension().string();
  if (extension == ".json") return describe_config(path);
  if (extension == ".safetensors") return describe_tensors(path);
  if (extension == ".h5" || extension == ".hdf5") return describe_dataset(path);
  fail_usage("etc info", "expected a model directory or a file *.json, *.safetensors or *.h5, got {}", path.string());
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("info", "describe a configuration, a model, a tensor file or a data set");
  command->footer(kExamples);
  command->add_option("path", *path, "model directory, config.json, *.safetensors or prepared *.h5")->required();
  command->callback([path] { run_info(*path); });
}

}  // namespace etc::cli

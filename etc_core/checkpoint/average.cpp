#include "etc_core/checkpoint/average.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeights = "model.safetensors";
using Readers = std::vector<std::unique_ptr<TensorFileReader>>;

// The properties in which averaged models must agree: the encoder with all defaults filled in, so that files of
// different versions compare by their meaning; the task; and the vocabulary to which rows of the tables belong.
std::map<std::string, std::string> described(const fs::path& model) {
  const Json config = read_model_config(model);
  const std::string where = "config: " + (model / "config.json").string() + ": model";
  const Json encoder = model_config_from_json(config.at("model"), where, UnknownKeys::refuse)->to_json();
  std::map<std::string, std::string> all;
  for (const auto& [key, value] : encoder.items()) all["model." + key] = json_line(value);
  const auto add = [&](const char* section, const char* key) {
    if (!config.contains(section) || !config[section].is_object() || !config[section].contains(key)) return;
    all[fmt::format("{}.{}", section, key)] = json_line(config[section][key]);
  };
  add("task", "name");
  add("data", "vocab_sha256");
  return all;
}

void check_configurations(const std::vector<fs::path>& models) {
  const std::map<std::string, std::string> first = described(models.front());
  const auto text = [](const std::map<std::string, std::string>& of, const std::string& key) {
    const auto found = of.find(key);
    return found == of.end() ? "nothing" : found->second;
  };
  for (const fs::path& model : models) {
    const std::map<std::string, std::string> own = described(model);
    for (const auto& keys : {first, own}) {
      for (const auto& [key, value] : keys) {
        if (text(first, key) == text(own, key)) continue;
        fail(model.string(), "{}: expected {} as in {}, got {} (only checkpoints of one model have a mean)", key,
             text(first, key), models.front().string(), text(own, key));
      }
    }
  }
}

void check_tensors(const Readers& files) {
  const auto& first = files.front()->entries();
  for (const auto& file : files) {
    for (const auto& [name, entry] : first) {
      if (!file->has(name)) {
        fail(file->path().string(), "{} {} is missing, which {} has", name, shape_text(entry.shape),
             files.front()->path().string());
      }
      if (const auto& shape = file->entry(name).shape; shape != entry.shape) {
        fail(file->path().string(), "{}: expected {} as in {}, got {}", name, shape_text(entry.shape),
             files.front()->path().string(), shape_text(shape));
      }
    }
    for (const auto& [name, entry] : file->entries()) {
      if (first.find(name) != first.end()) continue;
      fail(file->path().string(), "{} {}: expected no such tensor, as in {}", name, shape_text(entry.shape),
           files.front()->path().string());
    }
  }
}

Tensor mean_of(const Readers& files, const std::string& name) {
  std::vector<double> sums;
  Tensor mean;
  for (const auto& file : files) {
    mean = file->read_tensor(name, Purpose::weights);
    sums.resize(static_cast<std::size_t>(mean.size()));
    for (std::int64_t i = 0; i < mean.size(); ++i) {
      const auto number = static_cast<double>(mean.data()[i]);
      if (!std::isfinite(number)) {
        fail(file->path().string(), "{}: expected finite weights, got {} at {}", name, number, i);
      }
      sums[static_cast<std::size_t>(i)] += number;
    }
  }
  for (std::int64_t i = 0; i < mean.size(); ++i) {
    mean.data()[i] = static_cast<float>(sums[static_cast<std::size_t>(i)] / static_cast<double>(files.size()));
  }
  return mean;
}

}  // namespace

std::string average_models(const std::vector<fs::path>& models, const fs::path& output,
                           const std::function<void(std::int64_t)>& written) {
  if (models.empty()) fail_usage("average", "expected at least one model");
  Readers files;
  for (const fs::path& model : models) {
    std::error_code none;
    if (fs::equivalent(model, output, none)) {
      fail_usage("average", "the output {} is one of the models", output.string());
    }
    files.push_back(std::make_unique<TensorFileReader>(model / kWeights));
  }
  check_configurations(models);
  check_tensors(files);
  TensorFileWriter writer;
  std::vector<Tensor> means;  // until they are written
  for (const auto& [name, entry] : files.front()->entries()) writer.add(name, means.emplace_back(mean_of(files, name)));
  AtomicFolder update(output, OldFiles::drop);
  const fs::path& last = models.back();
  write_file_atomically(update.path() / "config.json", read_file(last / "config.json"));
  copy_text_files(last, update.path());
  writer.write(update.path() / kWeights, written);
  update.commit();
  return fmt::format("{}: the mean of {} models, {} tensors", (output / kWeights).string(), models.size(),
                     means.size());
}

}  // namespace etc

#include "etc_core/checkpoint/replaceable.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/kept_names.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr std::array kOurFiles = {"config.json",       "etc_config.json", "model.safetensors",
                                  "state.safetensors", "conversion.json", "optimizer_slots.safetensors",
                                  "model.ckpt.index",  kExportFile};

bool is_our_bert(const fs::path& folder) {
  const TensorFileReader weights(folder / "model.safetensors");
  const auto writer = weights.metadata().find(kWriterKey);
  return writer != weights.metadata().end() && writer->second == kBertWriter;
}

// The configuration that shows that this program wrote the folder; nullopt: it did not.
std::optional<Json> configuration_of(const fs::path& folder) {
  if (!fs::exists(folder / "model.safetensors") && !fs::exists(folder / "model.ckpt.index")) return std::nullopt;
  try {
    if (!fs::exists(folder / "config.json")) return read_json_file(folder / "etc_config.json");
    Json config = read_json_file(folder / "config.json");
    if (config.is_object() && config.contains("model")) return config;
    if (is_our_bert(folder)) return Json::object();
  } catch (const Error&) {
  }
  return std::nullopt;
}

// Names of the vocabulary files that the program put there, from a trained model's configuration or kExportFile.
std::vector<std::string> own_vocabulary_names(const fs::path& folder, const Json& config) {
  if (!fs::exists(folder / kExportFile)) return vocabulary_names(config);
  try {
    return vocabulary_names(read_json_file(folder / kExportFile));
  } catch (const Error&) {
    return {};  // damaged: the vocabulary may be the user's own file
  }
}

// The vocabulary, and the other text files that a run keeps beside it.
std::vector<std::string> own_text_files(const fs::path& folder, const Json& config) {
  std::vector<std::string> names = own_vocabulary_names(folder, config);
  if (names.empty() || fs::exists(folder / kExportFile)) return names;
  names.insert(names.end(), kPunktTables.begin(), kPunktTables.end());
  names.emplace_back(kTokenizerJson);
  return names;
}

// The name of a file the program did not put there, or "".
std::string foreign_file(const fs::path& folder, const Json& config) {
  const std::vector<std::string> kept = own_text_files(folder, config);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool ours = std::find(kept.begin(), kept.end(), name) != kept.end() || name.starts_with("model.ckpt.data-") ||
                      std::find(kOurFiles.begin(), kOurFiles.end(), name) != kOurFiles.end();
    if (!ours || !entry.is_regular_file()) return name;
  }
  return "";
}

}  // namespace

void require_replaceable(const fs::path& target, bool overwrite) {
  if (!fs::exists(target)) return;
  if (!fs::is_directory(target)) fail(target.string(), "expected a folder, got a file");
  if (fs::is_empty(target)) return;
  const std::optional<Json> config = configuration_of(target);
  if (!config) {
    fail_usage(target.string(),
               "refusing to replace a folder that is not a model directory: expected config.json with a section "
               "\"model\", or etc_config.json, and weights, or a BERT that --to bert wrote (give another folder)");
  }
  const std::string foreign = foreign_file(target, *config);
  if (!foreign.empty()) {
    fail_usage(target.string(), "refusing to replace a folder that holds more than a model: {} (give another folder)",
               foreign);
  }
  if (!overwrite) {
    fail_usage(target.string(), "a model is there already: expected a new or empty folder (--overwrite replaces it)");
  }
}

}  // namespace etc

#include "etc_core/checkpoint/convert/export.h"

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

namespace fs = std::filesystem;

namespace {

// The configuration. For an ETC, unused fields of residual attention are removed, because the reference does not know
// them (etc-core 9.3).
Json published_config(const EncoderConfig& config) {
  Json json = config.to_json();
  if (dynamic_cast<const EtcConfig*>(&config) != nullptr && !config.use_residual_attention) {
    for (const char* key : {"use_residual_attention", "use_running_mean", "residual_attention_types"}) json.erase(key);
  }
  return json;
}

// Adds every tensor except the step number; a tensor that cannot be read as floats is an error and not left out.
template <typename Writer>
std::int64_t add_all(const TensorFileReader& file, Writer& writer) {
  std::int64_t added = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (name == kGlobalStep) continue;
    writer.add(name, file.read_tensor(name, Purpose::weights));
    ++added;
  }
  return added;
}

}  // namespace

std::string copy_vocabulary(const fs::path& model, const fs::path& folder) {
  const Json config = read_model_config(model);
  const Json data = config.value("data", Json::object());
  const Json name = data.is_object() ? data.value("vocab_file", Json("")) : Json("");
  if (!name.is_string()) fail(model.string(), "data.vocab_file: expected a file name, got {}", json_line(name));
  const fs::path file = name.get<std::string>();
  if (file != file.filename())
    fail(model.string(), "data.vocab_file: expected a name in the folder, got {}", json_line(name));
  std::string copied;
  for (const std::string& each : vocabulary_names(config)) {
    if (each != file && !fs::exists(model / each)) continue;
    write_file_atomically(folder / each, read_file(model / each));
    copied += "; " + each;
  }
  if (!copied.empty()) write_file_atomically(folder / kExportFile, json_text({{"data", data}}));
  return copied;
}

std::string export_model(const fs::path& model, ExportFormat format, const fs::path& output,
                         const std::function<void(std::int64_t)>& written) {
  // The reference only has variables for an ETC.
  const ModelConfig config = format == ExportFormat::tf_names ? read_etc_config(model) : read_encoder_config(model);
  const TensorFileReader weights(model / "model.safetensors");
  AtomicFolder update(output, OldFiles::drop);
  write_file_atomically(update.path() / "etc_config.json", json_text(published_config(*config)));
  std::string text;
  if (format == ExportFormat::safetensors) {
    TensorFileWriter writer;
    const std::int64_t tensors = add_all(weights, writer);
    writer.set_metadata("format", "pt");
    writer.write(update.path() / "model.safetensors", written);
    text = fmt::format("{}: {} tensors", (output / "model.safetensors").string(), tensors);
  } else {
    TfBundleWriter writer;
    text = fmt::format("{}: {} tensors", (output / "model.ckpt").string(), add_all(weights, writer));
    if (fs::exists(model / "optimizer_slots.safetensors")) {
      const TensorFileReader slots(model / "optimizer_slots.safetensors");
      text += fmt::format(", {} optimiser slots", add_all(slots, writer));
      if (slots.has(kGlobalStep)) writer.add_i64(kGlobalStep, slots.read_i64(kGlobalStep).at(0));
    }
    writer.write(update.path() / "model.ckpt", written);
  }
  text += "; etc_config.json" + copy_vocabulary(model, update.path());
  update.commit();
  return text;
}

}  // namespace etc::convert

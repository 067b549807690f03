#include "etc_core/checkpoint/convert/export.h"

#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/atomic_folder.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

namespace fs = std::filesystem;

namespace {

// The configuration without our own fields where they say nothing: the reference does not know them (etc-core 9.3).
Json published_config(const EtcConfig& config) {
  Json json = config.to_json();
  if (!config.use_residual_attention) {
    for (const char* key : {"use_residual_attention", "use_running_mean", "residual_attention_types"}) json.erase(key);
  }
  return json;
}

template <typename Writer>
void add_all(const TensorFileReader& file, Writer& writer) {
  for (const auto& [name, entry] : file.entries()) {
    if (is_readable_float(entry.dtype)) writer.add(name, file.read_tensor(name, Purpose::weights));
  }
}

}  // namespace

std::string export_model(const fs::path& model, ExportFormat format, const fs::path& output) {
  const EtcConfig config = read_etc_config(model);
  const TensorFileReader weights(model / "model.safetensors");
  AtomicFolder update(output);
  write_file_atomically(update.path() / "etc_config.json", json_text(published_config(config)));
  if (format == ExportFormat::safetensors) {
    TensorFileWriter writer;
    add_all(weights, writer);
    writer.set_metadata("format", "pt");
    writer.write(update.path() / "model.safetensors");
  } else {
    TfBundleWriter writer;
    add_all(weights, writer);
    if (fs::exists(model / "optimizer_slots.safetensors")) {
      const TensorFileReader slots(model / "optimizer_slots.safetensors");
      add_all(slots, writer);
      if (slots.has("global_step")) writer.add_i64("global_step", slots.read_i64("global_step").at(0));
    }
    writer.write(update.path() / "model.ckpt");
  }
  update.commit();
  const char* what = format == ExportFormat::safetensors ? "model.safetensors" : "model.ckpt";
  return fmt::format("{}: {} tensors and etc_config.json", (output / what).string(), weights.entries().size());
}

}  // namespace etc::convert

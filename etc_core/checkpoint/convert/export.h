// Model directories for other tools.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace etc::convert {

enum class ExportFormat {
  safetensors,  // model.safetensors: names and shapes as in our own files, kernels [in, out]
  tf_names,     // model.ckpt.index and .data-00000-of-00001: a TensorFlow checkpoint with the reference's variables
};

// Writes all tensors of a model directory into a fresh or empty folder, with the configuration as etc_config.json: the
// section "model" alone, as published checkpoints have it (another encoder's names its "kind"), and with the vocabulary
// that the model directory keeps. safetensors takes encoders of any kind, tf_names an ETC.
// tf_names takes the slots of optimizer_slots.safetensors along, if there are any, so that a published checkpoint
// converted with heads and slots comes out as it went in. F16 and BF16 become F32; a tensor of another type is an
// Error. `written` is called after each tensor with how many there are by now. Returns a line for people. Throws Error
// when the folder is no model directory or a file is damaged, UsageError when the output is the model's own folder.
std::string export_model(const std::filesystem::path& model, ExportFormat format, const std::filesystem::path& output,
                         const std::function<void(std::int64_t tensors)>& written = {});

// Copies the vocabulary that a model directory keeps, and says in kExportFile which files that are. Returns "; name"
// for each file of it, "" where the model keeps none. Throws Error on a configuration whose data.vocab_file is no name
// of a file in the directory.
std::string copy_vocabulary(const std::filesystem::path& model, const std::filesystem::path& folder);

}  // namespace etc::convert

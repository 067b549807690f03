// Exports model directories for other tools.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace etc::convert {

enum class ExportFormat {
  safetensors,  // model.safetensors: names and shapes as in the model directory, kernels [in, out]
  tf_names,     // model.ckpt.index and .data-00000-of-00001: a TensorFlow checkpoint with the reference's variables
};

// Writes all tensors of a model directory into a new or empty folder, with the configuration as etc_config.json (only
// the section "model", as in published checkpoints; for encoders other than ETC it names the "kind") and with the
// vocabulary of the model directory. safetensors supports encoders of any kind, tf_names only an ETC.
// tf_names also writes the slots of optimizer_slots.safetensors, if there are any, so that a published checkpoint
// converted with heads and slots is reproduced. F16 and BF16 become F32; a tensor of another type is an Error.
// `written` is called after each tensor with the number written so far. Returns a message line. Throws Error when the
// folder is not a model directory or a file is damaged, UsageError when the output is the model's own folder.
std::string export_model(const std::filesystem::path& model, ExportFormat format, const std::filesystem::path& output,
                         const std::function<void(std::int64_t tensors)>& written = {});

// Copies the vocabulary of a model directory and lists its files in kExportFile. Returns "; name" for each file, "" if
// the model has none. Throws Error on a configuration whose data.vocab_file is not the name of a file in the directory.
std::string copy_vocabulary(const std::filesystem::path& model, const std::filesystem::path& folder);

}  // namespace etc::convert

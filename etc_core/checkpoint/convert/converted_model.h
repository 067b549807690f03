// The result of a conversion: a model directory with the report beside the weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

struct ConvertedModel {
  Json config;  // the whole config.json, with its section "model"
  const ParameterSet& parameters;
  TfEtcExtras extras = {};
  MoreFiles files = {};  // such as the vocabulary
};

// Creates or atomically replaces the model directory: config.json, model.safetensors, the model's files,
// conversion.json (the report) and, if there are extras, optimizer_slots.safetensors with <name>/adam_m, <name>/adam_v
// and global_step. `written`: see TensorFileWriter::write; only for the parameters.
void save_converted_model(const std::filesystem::path& folder, const ConvertedModel& model,
                          const ConversionReport& report,
                          const std::function<void(std::int64_t tensors)>& written = {});

}  // namespace etc::convert

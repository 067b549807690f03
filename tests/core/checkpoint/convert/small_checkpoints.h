// Small models in the file formats of other programs: an ETC checkpoint of TensorFlow, a BERT of PyTorch's library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::test {

// Two layers, H = 8, two heads, V = 11.
EtcConfig small_etc_config();

// A checkpoint as TensorFlow writes it for a configuration, with random numbers. A test may add more variables.
struct TfCheckpoint {
  explicit TfCheckpoint(const EtcConfig& config);

  // Adds the model's variables; `rename` gives the name of each, empty: left out.
  void add(const std::function<std::string(const std::string&)>& rename = {});

  ParameterSet parameters;
  convert::TfBundleWriter writer{2};
};

// Two layers, H = 8, two heads, V = 12.
convert::BertConfig small_bert();
Json small_bert_json();  // its config.json, without a model_type, like Google's and older ones

// The variables of a BERT by their PyTorch names, with random numbers; tests remove, add or rename some.
struct HubBert {
  explicit HubBert(const convert::BertConfig& config, const std::string& prefix = "bert.");

  void write(const std::filesystem::path& file) const;  // safetensors
  float at(const std::string& name, std::int64_t i) const { return tensors.at(name).data()[i]; }

  std::map<std::string, Tensor> tensors;
};

}  // namespace etc::test

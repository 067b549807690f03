// Golden numbers of the model in one flat file that needs no HDF5: a safetensors file with "<case>/<array>" for every
// array, and the cases' configurations in its metadata. Integers are stored as 64-bit numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::gpu_check {

struct PackedCase {
  EtcConfig config;
  EncoderInput input;
  Tensor of_long, of_global;            // expected states; nan: not compared
  Tensor weights_long, weights_global;  // of the loss; undefined without gradients
  bool has_gradients = false;
  double loss = 0;
  std::map<std::string, Tensor> gradients;
};

class GoldenPack {
 public:
  explicit GoldenPack(const std::filesystem::path& file);
  std::vector<std::string> names() const;
  PackedCase read(const std::string& name) const;
  void fill(const std::string& name, ParameterSet& parameters) const;  // with the case's weights

 private:
  TensorFileReader file_;
};

class GoldenPackWriter {
 public:
  // `weights`: filled parameters of the case's model.
  void add(const std::string& name, const PackedCase& packed, const ParameterSet& weights);
  void write(const std::filesystem::path& file) const { file_.write(file); }

 private:
  TensorFileWriter file_;
};

}  // namespace etc::gpu_check

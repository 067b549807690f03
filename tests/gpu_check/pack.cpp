// The golden numbers of the model as one flat file for machines without HDF5 (golden_pack.h).
#include "tests/gpu_check/pack.h"

#include <cmath>

#include "etc_core/nn/etc_encoder.h"
#include "tests/golden/golden_case.h"
#include "tests/gpu_check/golden_pack.h"

namespace etc::gpu_check {

namespace {

using namespace test;

Tensor tensor_of(const GoldenArray<double>& array, std::int64_t cols) {
  const std::vector<float> values(array.values.begin(), array.values.end());
  return Tensor::from(values, {static_cast<std::int64_t>(values.size()) / cols, cols}, Purpose::activations);
}

// Expected states; nan in rows without a visible key, whose output the reference does not define.
Tensor states_of(const GoldenCase& golden, bool global) {
  const Tensor states =
      tensor_of(best_reference(golden.file, "", "outputs", global ? "global" : "long"), golden.config.hidden_size);
  const std::int64_t rows = global ? golden.globals : golden.length;
  for (std::int64_t row = 0; row < states.rows(); ++row) {
    if (!golden.masks.fully_masked(global, row / rows, row % rows)) continue;
    std::fill_n(states.data() + row * states.cols(), states.cols(), NAN);
  }
  return states;
}

PackedCase packed_of(const GoldenCase& golden) {
  PackedCase packed;
  packed.config = golden.config;
  packed.input = golden.input();
  packed.of_long = states_of(golden, false);
  packed.of_global = states_of(golden, true);
  packed.has_gradients = golden.file.has("grads");
  if (!packed.has_gradients) return packed;
  const std::int64_t width = golden.config.hidden_size;
  packed.weights_long = tensor_of(golden.file.read<double>("loss/W_long"), width);
  packed.weights_global = tensor_of(golden.file.read<double>("loss/W_global"), width);
  packed.loss = golden.file.read<double>(golden.file.has("loss/value64") ? "loss/value64" : "loss/value").values.at(0);
  for (const std::string& name : data_sets_below(golden.file, "grads")) {
    const auto values = best_reference(golden.file, "", "grads", name);
    packed.gradients[name] = tensor_of(values, static_cast<std::int64_t>(values.values.size()));
  }
  return packed;
}

}  // namespace

std::int64_t write_pack(const std::filesystem::path& output) {
  GoldenPackWriter writer;
  std::int64_t cases = 0;
  for (const auto& path : model_files("etc")) {
    const GoldenCase golden(path);
    ParameterSet parameters;
    const EtcEncoder encoder(golden.config, parameters);
    load_golden_weights(golden.file, "weights", parameters);
    writer.add(path.stem().string(), packed_of(golden), parameters);
    ++cases;
  }
  if (cases > 0) writer.write(output);
  return cases;
}

}  // namespace etc::gpu_check
